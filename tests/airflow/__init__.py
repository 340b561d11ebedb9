"""The Airflow face, by real runs."""
