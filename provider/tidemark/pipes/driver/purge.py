"""PURGE: files whose rows are in the table are removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tidemark.errors import StorageRefused, StorageUnreachable
from tidemark.lake.failures import storage_errors_named
from tidemark.lake.orphans import open_fresh
from tidemark.lake.storage import Storage
from tidemark.pipes.driver.prepare import FileToLoad
from tidemark.pipes.model.copying import Load
from tidemark.pipes.model.files import FileReport

__all__ = ["purge_files"]


def purge_files(
    load: Load,
    options: Mapping[str, str] | None,
    planned: Iterable[FileToLoad],
    reports: Sequence[FileReport],
    say: Callable[[str], None],
) -> None:
    """Remove the files that were loaded. A file that cannot be removed is logged, and stays in the history. So is one
    that was replaced after it was planned: its new rows are in no table.

    A second run finds nothing to do.
    """
    loaded = {report.file for report in reports if report.status.has_rows}
    for file in planned:
        if file.name not in loaded:
            continue
        try:
            if not _is_same(Storage(load.location, options), file):
                say(f"left {file.name}: it was replaced after it was loaded")
                continue
            filesystem, root = open_fresh(load.location, options)
            with storage_errors_named(f"{load.location}/{file.name}"):
                filesystem.rm_file(f"{root}/{file.name}")
        except FileNotFoundError:
            continue
        except (StorageRefused, StorageUnreachable) as error:
            say(f"could not remove {file.name}: {error.facts['problem']}")


def _is_same(storage: Storage, file: FileToLoad) -> bool:
    """Whether the file is as it was planned. Raises FileNotFoundError if it is gone."""
    found = storage.stored_file(file.name)
    if found is None:
        raise FileNotFoundError(file.name)
    return file.is_still(found)
