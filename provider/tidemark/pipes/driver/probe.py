"""Files that cannot be read, all at once, where Spark would name one for each try, or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from tidemark.errors import DataFileUnreadable
from tidemark.jobs.spark_failures import SPARK_FAILURES
from tidemark.lake.storage import Storage
from tidemark.pipes.driver.packed import unpacked
from tidemark.pipes.driver.readings import Reading
from tidemark.pipes.driver.unreadable import broken_file, may_be_of_a_file, opened, reason_of
from tidemark.pipes.driver.whole_reads import WholeReads
from tidemark.pipes.planning.halving import Fault, broken_among

__all__ = ["broken_by_halves", "broken_texts"]

_AT_ONCE = 8


def broken_texts(
    location: str, options: Mapping[str, str] | None, files: Sequence[str], stop_if_due: Callable[[], None]
) -> dict[str, str]:
    """File → why it cannot be read to its end, of those that cannot. Each is read and unpacked once.

    Raises StorageUnreachable: a storage that does not answer breaks no file. Raises what `stop_if_due` raises.
    """
    storage, reads = Storage(location, options), WholeReads(stop_if_due)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = dict(zip(files, pool.map(lambda file: _problem(storage, file, reads), files), strict=True))
    return {file: problem for file, problem in found.items() if problem is not None}


def broken_by_halves(
    location: str, files: Sequence[str], reading: Callable[[Sequence[str]], Reading]
) -> dict[str, str]:
    """File → why Spark cannot read it, of those that it cannot. Nothing is written.

    `reading`: of some of the files. Raises what Spark raises for failures that are not of a file.
    """
    return broken_among(files, lambda some: _fault(location, some, reading))


def _fault(location: str, files: Sequence[str], reading: Callable[[Sequence[str]], Reading]) -> Fault | None:
    """The failure of a read of all rows, with the columns that the load takes."""
    try:
        for rows in reading(files).frames(files):
            rows.write.format("noop").mode("overwrite").save()
    except SPARK_FAILURES as error:
        named = broken_file(error, location, files)
        if named is not None:
            return Fault(named[1], named[0])
        if not may_be_of_a_file(error):
            raise
        return Fault(reason_of(error))
    return None


def _problem(storage: Storage, file: str, reads: WholeReads) -> str | None:
    try:
        with opened(storage, file) as packed:
            for _ in reads.blocks(unpacked(packed, file)):
                pass
    except DataFileUnreadable as error:
        return str(error.facts["problem"])
    return None
