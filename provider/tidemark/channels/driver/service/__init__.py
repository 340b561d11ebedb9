"""The ingest service: channels over HTTP, in the driver of a submitted Spark application."""
