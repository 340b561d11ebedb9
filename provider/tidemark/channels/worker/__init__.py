"""Channels on the side of Airflow: the tokens of writers, and the order to serve."""
