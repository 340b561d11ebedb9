"""The SQL of the source system as values: statements on streams, points in time, CHANGES, system functions."""
