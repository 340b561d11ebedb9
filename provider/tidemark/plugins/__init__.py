"""Tidemark's additions to Airflow's own pages."""
