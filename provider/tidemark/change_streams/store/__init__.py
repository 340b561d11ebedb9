"""Change streams, partitions and consumer groups in the control store."""
