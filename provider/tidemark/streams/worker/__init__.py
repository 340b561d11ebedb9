"""Steps of a consumption on the Airflow side (PROTOCOL section 3): begin, submit, commit, roll back."""
