"""The windows of a transaction as DataFrames and views: the same rows however often they are read (R20)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tidemark.errors import DataFileUnreadable, StreamNotFound
from tidemark.jobs.failures import named_failure
from tidemark.jobs.spark_failures import SPARK_FAILURES
from tidemark.model.streams import StreamWindow
from tidemark.streams.driver.windows import read_query_window, read_window, require_files_of_window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidemark.changes.driver.views.read import FoundRows
    from tidemark.jobs.workspace import Workspace

__all__ = ["PinnedStreams"]


class PinnedStreams:
    """Streams by name in one session, each pinned to its window.

    A window is planned when its stream is first asked for, and `say` gets the plan in a line. Names are found exactly,
    else without regard to case (R12). The rows of `shared` streams are kept from their first read until `close`.
    """

    def __init__(
        self,
        session: SparkSession,
        windows: tuple[StreamWindow, ...],
        workspace: Workspace,
        options: Mapping[str, str] | None = None,
        *,
        prefix: str = "tidemark_stream",
        say: Callable[[str], None] | None = None,
        shared: Collection[str] = (),
    ) -> None:
        self.session = session
        self._windows = {window.stream_name: window for window in windows}
        self._workspace = workspace
        self._options = options
        self._prefix = prefix
        self._say = say
        self._frames: dict[str, DataFrame] = {}
        self._views: set[str] = set()
        self._shared = {self.window(name).stream_name for name in shared}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the streams, in the transaction's order."""
        return tuple(self._windows)

    def window(self, name: str) -> StreamWindow:
        """The window of a stream. Raises StreamNotFound."""
        if name in self._windows:
            return self._windows[name]
        folded = [window for known, window in self._windows.items() if known.lower() == name.lower()]
        if len(folded) != 1:
            raise StreamNotFound(stream=name)
        return folded[0]

    def frame(self, name: str) -> DataFrame:
        """The stream's rows: source columns, then METADATA$ACTION, METADATA$ISUPDATE, METADATA$ROW_ID (R27)."""
        window = self.window(name)
        if window.stream_name not in self._frames:
            rows = read_window(self.session, window, self._workspace, self._options, say=self._say)
            self._frames[window.stream_name] = rows.persist() if window.stream_name in self._shared else rows
        return self._frames[window.stream_name]

    def query(self, name: str, *, signed: bool) -> FoundRows:
        """The rows of a stream on a query. `signed`: with their signs, for sums, of a linear query."""
        window = self.window(name)
        return read_query_window(self.session, window, self._workspace, self._options, signed=signed, say=self._say)

    def view(self, name: str) -> str:
        """A temporary view of the stream in this session; its name is ready for SQL text."""
        window = self.window(name)
        view = f"{self._prefix}_{self.names.index(window.stream_name)}"
        self.frame(name).createOrReplaceTempView(view)
        self._views.add(view)
        return view

    @contextmanager
    def lost_files_named(self) -> Iterator[None]:
        """A query inside that cannot read a file is VersionVacuumed if files of a window are gone by now. VACUUM ran
        after the look at them.
        """
        try:
            yield
        except SPARK_FAILURES as error:
            if isinstance(named_failure(error), DataFileUnreadable):
                self._require_files()
            raise

    def _require_files(self) -> None:
        for window in self._windows.values():
            require_files_of_window(window, self._options)

    def close(self) -> None:
        """Take the views away, and give back what was kept; DataFrames that were made from them stay. A second run
        finds none.
        """
        while self._views:
            self.session.catalog.dropTempView(self._views.pop())
        while self._shared:
            if (kept := self._frames.get(self._shared.pop())) is not None:
                kept.unpersist()
