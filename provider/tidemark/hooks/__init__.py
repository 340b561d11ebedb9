"""Connections of a worker to the control store, the lake and Spark."""
