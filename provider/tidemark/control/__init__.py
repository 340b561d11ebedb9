"""The control store: its engine, schema and migrations. It knows no Spark and no Airflow."""
