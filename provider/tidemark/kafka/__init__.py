"""Kafka topics, read between two offsets: no consumer group, no commit."""
