"""Listings of the locations of pipes, which all who look in one process share."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

from tidemark.errors import StageLocationMissing
from tidemark.lake.file_listing import FileListing
from tidemark.lake.file_names import FileFilter

if TYPE_CHECKING:
    import pyarrow as pa

    from tidemark.lake.storage import StoredFile

__all__ = ["FULL_AFTER", "Listings"]

FULL_AFTER = 3600.0  # seconds after which all names are asked for again, where a listing continues behind the last one
_MOST_PLACES = 64  # whose names are kept


@dataclass
class _Place:
    """Files of a location whose names begin with a prefix, as they were listed."""

    lock: Lock = field(default_factory=Lock)
    files: Any = None
    last: str = ""
    full_at: float = 0.0
    ended_at: float = float("-inf")


class Listings:
    """Lists each location once for all who look at it at the same time, in bounded requests.

    A store that lists by name is asked for the names behind the last one. After `full_after` seconds it is asked for
    all of them. A file that was removed stays in the answer until then.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._places: dict[tuple[str, str], _Place] = {}
        self.requests = 0

    def files(
        self,
        location: str,
        prefix: str,
        options: Mapping[str, Any] | None,
        *,
        max_age: float = 0.0,
        full_after: float = FULL_AFTER,
    ) -> pa.Table:
        """(file, modified_at) of the files that are not hidden. An answer that ended after the call, or up to
        `max_age` seconds before it, is shared. Raises StageLocationMissing, StorageUnreachable, StorageRefused.
        """
        asked = time.monotonic()
        place = self._place(location, prefix)
        with place.lock:
            if place.ended_at < asked - max_age:
                self._look(place, location, prefix, options, full_after)
            return place.files

    def _place(self, location: str, prefix: str) -> _Place:
        with self._lock:
            place = self._places.pop((location, prefix), None) or _Place()
            self._places[location, prefix] = place  # the one that was asked for last
            while len(self._places) > _MOST_PLACES:
                del self._places[next(iter(self._places))]
            return place

    def _look(
        self, place: _Place, location: str, prefix: str, options: Mapping[str, Any] | None, full_after: float
    ) -> None:
        import pyarrow as pa

        began = time.monotonic()
        is_sorted = location.startswith("s3://")
        goes_on = is_sorted and place.files is not None and began - place.full_at < full_after
        listing = FileListing(
            location, options, only=FileFilter(prefix=prefix), start_after=place.last if goes_on else ""
        )
        try:
            batches = [_batch(page) for page in listing.pages()]
        except (FileNotFoundError, NotADirectoryError) as error:
            raise StageLocationMissing(location=location) from error
        finally:
            self.requests += listing.requests
        found = pa.Table.from_batches(batches, _schema())
        place.files = pa.concat_tables([place.files, found]).combine_chunks() if goes_on else found.combine_chunks()
        if not goes_on:
            place.full_at = began
        if is_sorted and found.num_rows:
            place.last = found["file"][-1].as_py()
        place.ended_at = time.monotonic()


def _schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema([("file", pa.string()), ("modified_at", pa.timestamp("us", "UTC"))])


def _batch(page: list[StoredFile]) -> pa.RecordBatch:
    import pyarrow as pa

    good = [file for file in page if file.problem is None and _is_text(file.name)]
    return pa.record_batch([[f.name for f in good], [f.modified_at for f in good]], schema=_schema())


def _is_text(name: str) -> bool:
    """Whether a run would take a file of this name."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
