"""The files of a location as rows: from a listing, or by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from tidemark.errors import FilesNotFound, StageLocationMissing
from tidemark.lake.file_listing import FileListing
from tidemark.lake.file_names import FileFilter
from tidemark.lake.storage import Storage, StoredFile
from tidemark.pipes.model.copying import Load
from tidemark.pipes.planning.named_files import name_below

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["FOUND_SCHEMA", "Listed", "list_files", "named_files"]

FOUND_SCHEMA = pa.schema(
    [("file", pa.string()), ("size", pa.int64()), ("modified_at", pa.timestamp("us", "UTC")), ("etag", pa.string())]
)
_AT_ONCE = 16  # requests to an object store
_MOST_NAMED = 20  # in an error, and in the log


@dataclass
class Listed:
    """Files in Arrow form. `last`: the greatest name, for a listing that continues behind it. `refused`: pipes, devices
    and links that lead nowhere, with the reason. `requests`: of the listing.
    """

    tables: list[pa.RecordBatch] = field(default_factory=list)
    last: str = ""
    refused: dict[str, str] = field(default_factory=dict)
    requests: int = 0

    def add(self, files: Iterable[StoredFile]) -> None:
        """Add files; those that are none are refused."""
        good = []
        for file in files:
            if file.problem is None:
                good.append(file)
            else:
                self.refused[file.name] = file.problem
        if good:
            columns = [[f.name for f in good], [f.size for f in good], [f.modified_at for f in good]]
            arrays = [pa.array(values, kind) for values, kind in zip(columns, FOUND_SCHEMA.types, strict=False)]
            self.tables.append(pa.record_batch([*arrays, pa.array([f.etag for f in good])], schema=FOUND_SCHEMA))
            self.last = max([self.last, *(f.name for f in good)], key=lambda name: name.encode())

    @property
    def count(self) -> int:
        """The number of files."""
        return sum(batch.num_rows for batch in self.tables)

    def say_refused(self, say: Callable[[str], None]) -> None:
        """Log the first files that were refused."""
        for file, problem in sorted(self.refused.items())[:_MOST_NAMED]:
            say(f"left out {file}: {problem}")

    def frame(self, spark: SparkSession) -> DataFrame:
        """(file STRING, size BIGINT, modified_at TIMESTAMP, etag STRING)."""
        return spark.createDataFrame(self.table)

    @property
    def table(self) -> pa.Table:
        """The files with the columns of FOUND_SCHEMA."""
        return pa.Table.from_batches(self.tables, FOUND_SCHEMA)


def list_files(
    load: Load,
    options: Mapping[str, str] | None,
    *,
    prefix: str = "",
    modified_after: datetime | None = None,
    start_after: str = "",
) -> Listed:
    """The files that the load means, with a further prefix, modified after a time, or with names behind `start_after`.

    Names that are no UTF-8 are refused. Raises StageLocationMissing, StorageRefused, StorageUnreachable,
    InvalidArgument for a pattern that is none.
    """
    only = FileFilter(prefix=load.prefix + prefix, regex=load.pattern)
    listing = FileListing(load.location, options, only=only, start_after=start_after)
    found = Listed()
    try:
        for page in listing.pages():
            found.add(_meant(page, modified_after, found.refused))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StageLocationMissing(location=load.location) from error
    found.requests = listing.requests
    return found


def named_files(load: Load, options: Mapping[str, str] | None, names: Iterable[str], *, missing_ok: bool) -> Listed:
    """The files of these names, below the location and prefix of the load. A hidden name is refused.

    With `missing_ok` a missing file is refused, too; else it raises FilesNotFound. Raises InvalidArgument for a name
    that leads out of the location.
    """
    storage = Storage(load.location, options)
    wanted = list(dict.fromkeys(name_below(load.prefix, name) for name in names))
    found, missing, only = Listed(), [], FileFilter(regex=load.pattern)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for name, file in zip(wanted, pool.map(storage.stored_file, wanted), strict=True):
            if file is None:
                missing.append(name)
                found.refused[name] = "it does not exist"
            elif not only.accepts(name):
                found.refused[name] = "its name is hidden, or does not match the pattern"
            else:
                found.add([file])
    if missing and not missing_ok:
        shown = ", ".join(missing[:_MOST_NAMED])
        raise FilesNotFound(location=load.location, files=shown)
    return found


def _meant(page: list[StoredFile], after: datetime | None, refused: dict[str, str]) -> Iterator[StoredFile]:
    for file in page:
        if after is not None and file.modified_at <= after:
            continue
        try:
            file.name.encode()
        except UnicodeEncodeError:
            refused[ascii(file.name)] = "its name is not UTF-8"
            continue
        yield file
