"""Search paths built by Spark and read by PyArrow."""
