"""The exceptions of failing queries: those with a class in PySpark, and those of the JVM without one."""

from __future__ import annotations

from pyspark.errors import PySparkException

__all__ = ["SPARK_FAILURES"]

SPARK_FAILURES: tuple[type[Exception], ...] = (PySparkException,)

try:
    from py4j.protocol import Py4JJavaError
except ImportError:  # a client of Spark Connect alone has no JVM
    pass
else:
    SPARK_FAILURES = (PySparkException, Py4JJavaError)
