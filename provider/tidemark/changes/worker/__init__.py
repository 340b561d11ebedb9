"""What a table's log says of its changes, asked on the Airflow side."""
