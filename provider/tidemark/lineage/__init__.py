"""Lineage: inputs and outputs of a task in OpenLineage's terms, for Airflow's OpenLineage provider."""
