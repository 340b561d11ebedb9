"""Lineage: what a task read and wrote, in OpenLineage's words; for Airflow's provider of that name alone."""
