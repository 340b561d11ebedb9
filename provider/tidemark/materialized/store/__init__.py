"""State of materialized views and dynamic tables in the control store."""
