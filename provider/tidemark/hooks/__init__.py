"""Connections: how a worker reaches the control store, the lake and Spark."""
