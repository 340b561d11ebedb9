"""What Tidemark adds to Airflow's own pages."""
