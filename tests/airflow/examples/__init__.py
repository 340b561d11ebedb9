"""The DAGs of provider/docs/operators: a page shows the lines between [START …] and [END …]."""
