"""Clustered tables and their reclusterings in the control store."""
