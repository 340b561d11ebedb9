"""The Spark session of a client, which may start later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ClientSession"]


class ClientSession:
    """A session, or a function that starts one. It is called once, at the first use of Spark.

    `settings` are set on the session when it starts. Before that, they stand for the settings that a query depends on.
    """

    def __init__(self, given: SparkSession | Callable[[], SparkSession], settings: Mapping[str, str]) -> None:
        self._start: Callable[[], SparkSession] | None = given if callable(given) else None
        self._spark: SparkSession | None = None if callable(given) else given
        self._starting = Lock()
        self.settings = dict(settings)
        if self._spark is not None:
            self._settle(self._spark)

    @property
    def started(self) -> bool:
        """Whether there is a session."""
        return self._spark is not None

    @property
    def spark(self) -> SparkSession:
        """The session; it is started if it has to be."""
        with self._starting:
            if self._spark is None:
                assert self._start is not None
                started = self._start()
                self._settle(started)
                self._spark = started
            return self._spark

    def _settle(self, spark: SparkSession) -> None:
        for name, value in self.settings.items():
            spark.conf.set(name, value)
