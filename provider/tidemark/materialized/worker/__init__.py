"""Steps of materialized views and dynamic tables on the worker's side."""
