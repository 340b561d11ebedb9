"""Entry points of the Spark side: one job per process, a JobSpec in, a JobResult out."""
