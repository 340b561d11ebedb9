"""The files of stored answers: opened, read and removed."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemark.errors import AnswerDamaged
from tidemark.lake.failures import storage_errors_named
from tidemark.lake.orphans import open_fresh
from tidemark.lake.storage import Storage, canonical_uri, listed_time
from tidemark.model.foreign_json import parsed
from tidemark.results.model.answers import WrittenAnswer
from tidemark.results.worker.zones import arrow_zone

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AnswerLost", "OpenAnswer", "new_directory", "remove_directory", "titles_of", "unused_directories"]

_ROOM = "results"
_NOT_LISTED = 0o1733  # everybody may add an answer, and nobody sees the names of others'


class AnswerLost(ValueError):
    """The reason why the files of an answer cannot be read."""


class OpenAnswer:
    """An answer whose files are open, so that its removal does not disturb a reader. Raises AnswerLost, and
    StorageRefused for files that the reader may not open.
    """

    def __init__(self, written: WrittenAnswer, options: Mapping[str, Any]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.written = written
        self.titles = titles_of(written.schema_json)
        storage, stack = Storage(written.location, options), ExitStack()
        weakref.finalize(self, stack.close)
        try:
            with storage_errors_named(written.location, misuse=False):
                self._files = [pq.ParquetFile(stack.enter_context(storage.open(name))) for name in written.files]
        except (pa.ArrowException, OSError) as error:  # OSError: a missing file, or a footer that is garbage
            stack.close()
            raise AnswerLost(str(error).splitlines()[0]) from error
        if sum(file.metadata.num_rows for file in self._files) != written.rows:
            stack.close()
            raise AnswerLost("its files have another number of rows")
        if any(len(file.schema_arrow.names) != len(self.titles) for file in self._files):
            stack.close()
            raise AnswerLost("its files have other columns")

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in their order, a part at a time. Raises AnswerDamaged."""
        for file in self._files:
            parts = file.iter_batches()
            while (batch := self._next(parts)) is not None:
                yield from self._shown(_table([batch])).to_batches()

    def _next(self, parts: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
        with self._damage_named():
            return next(parts, None)

    def table(self) -> pa.Table:
        """All rows. Raises AnswerDamaged."""
        import pyarrow as pa

        with self._damage_named():
            found = pa.concat_tables([file.read() for file in self._files])
        return self._shown(found)

    @contextmanager
    def _damage_named(self) -> Iterator[None]:
        import pyarrow as pa

        try:
            with storage_errors_named(self.written.location, misuse=False):
                yield
        except (pa.ArrowException, OSError) as error:  # OSError: pages that are garbage
            raise AnswerDamaged(location=self.written.location, problem=str(error).splitlines()[0]) from error

    def _shown(self, table: pa.Table) -> pa.Table:
        """The rows under their titles, with times in the session's zone."""
        zone = arrow_zone(self.written.time_zone)
        zoned = [_zoned(field.type, zone) for field in table.schema]
        columns = [
            column if column.type == kind else column.cast(kind)
            for column, kind in zip(table.columns, zoned, strict=True)
        ]
        return type(table).from_arrays(columns, names=list(self.titles))


def titles_of(schema_json: str) -> tuple[str, ...]:
    """The names of the columns."""
    return tuple(str(field["name"]) for field in parsed(schema_json)["fields"])


def new_directory(workspace: str, name: str) -> str:
    """A place for an answer, whose name was never used. On a local disk only its name leads to it."""
    room = f"{canonical_uri(workspace)}/{_ROOM}"
    if room.startswith("file://"):
        path = Path(room.removeprefix("file://"))
        if not path.exists():
            path.mkdir(parents=True, exist_ok=True)
            with suppress(PermissionError):  # another user was first
                os.chmod(path, _NOT_LISTED)
    return f"{room}/{name}"


def remove_directory(location: str, options: Mapping[str, Any]) -> None:
    """Remove an answer's files. A second run finds none. Raises StorageRefused, StorageUnreachable."""
    with storage_errors_named(location), suppress(FileNotFoundError):
        filesystem, path = open_fresh(location, options)
        filesystem.rm(path, recursive=True)


def unused_directories(
    workspace: str, options: Mapping[str, Any], *, used: frozenset[str], older_than: datetime
) -> tuple[str, ...]:
    """The directories of answers that no index has, such as those of killed runs. Raises StorageRefused."""
    room = f"{canonical_uri(workspace)}/{_ROOM}"
    with storage_errors_named(room):
        filesystem, path = open_fresh(room, options)
        try:
            entries = filesystem.ls(path, detail=True)
        except FileNotFoundError:
            return ()
        names = {str(entry["name"]).rstrip("/").rsplit("/", 1)[-1]: entry for entry in entries}
        known = {location.rsplit("/", 1)[-1] for location in used}
        return tuple(
            f"{room}/{name}"
            for name, entry in sorted(names.items())
            if name not in known and _newest(filesystem, entry) < older_than
        )


def _newest(filesystem: Any, entry: Mapping[str, Any]) -> datetime:
    """The newest time of a directory and its files."""
    files = filesystem.find(str(entry["name"]), detail=True).values()
    times = [time for one in (entry, *files) if (time := listed_time(one)) is not None]
    return max(times) if times else datetime.max.replace(tzinfo=UTC)


def _table(batches: list[pa.RecordBatch]) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_batches(batches)


def _zoned(kind: pa.DataType, zone: str) -> pa.DataType:
    """The type with the session's zone in place of UTC."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit, tz=zone) if kind.tz else kind
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_zoned(kind.value_type, zone)))
    if pa.types.is_map(kind):
        items = kind.item_field.with_type(_zoned(kind.item_type, zone))
        return pa.map_(kind.key_field.with_type(_zoned(kind.key_type, zone)), items)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_zoned(field.type, zone)) for field in kind])
    return kind
