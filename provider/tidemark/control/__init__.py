"""STATE: the control store, its schema and migrations, and the named state moves on it; no Spark, no Airflow."""
