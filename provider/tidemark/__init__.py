"""Tidemark: change streams on Delta tables, consumed exactly once by Airflow on Spark.

Importing the package imports nothing else: provider discovery runs before Airflow is configured.
"""

__version__ = "0.1.0"
