"""The DAGs of provider/docs/operators: a page shows what stands here between [START …] and [END …]."""
