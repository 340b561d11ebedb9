"""The Spark session of a client, which may start later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING

from tidemark.jobs.remote import is_remote
from tidemark.jobs.spark_work import NOT_INHERITED, own_session

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
        self._query_session: tuple[dict[str, str], SparkSession] | None = None
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

    @property
    def known(self) -> Mapping[str, str]:
        """The settings of the session, or those that stand for them before it starts. A question costs some ms."""
        found: Mapping[str, str] = self.settings if self._spark is None else self._spark.conf.getAll
        return found

    def for_queries(self, known: Mapping[str, str]) -> SparkSession:
        """A session with the settings of this one, without its views, functions and variables, to be used again.

        `known`: its settings, as the caller has asked for them. Spark Connect has none, so there it is this one.
        """
        spark = self.spark
        if is_remote(spark):
            return spark
        settings = {name: value for name, value in known.items() if name not in NOT_INHERITED}
        if self._query_session is None or self._query_session[0] != settings:
            self._query_session = settings, own_session(spark)
        return self._query_session[1]

    def _settle(self, spark: SparkSession) -> None:
        for name, value in self.settings.items():
            spark.conf.set(name, value)
