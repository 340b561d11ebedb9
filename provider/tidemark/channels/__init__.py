"""Channels: rows into a table within seconds, each once, without files and without a Spark job per batch."""
