"""ENVELOPES of a Debezium, as files in a directory or a bucket, or as records of Kafka topics."""
