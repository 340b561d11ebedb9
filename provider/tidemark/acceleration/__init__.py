"""Query acceleration: what more executors would save, read from event logs, and jobs that get them."""
