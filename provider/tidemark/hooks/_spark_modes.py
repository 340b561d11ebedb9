"""The ways in which jobs run on Spark, as settings name them."""

from __future__ import annotations

from enum import Enum

__all__ = ["SparkMode"]


class SparkMode(Enum):
    """`warm`: the Connect server of this host, started when it is needed. `submit`: a JVM for each job. `connect`: the
    server of a Spark connection of that type.
    """

    WARM = "warm"
    SUBMIT = "submit"
    CONNECT = "connect"
