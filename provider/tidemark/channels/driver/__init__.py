"""Channels in a process with a JVM: buffers, Parquet files and commits by Delta Kernel."""
