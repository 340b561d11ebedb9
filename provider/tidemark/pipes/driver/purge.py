"""PURGE: files whose rows are in the table are removed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tidemark.errors import StorageRefused, StorageUnreachable
from tidemark.lake.failures import storage_errors_named
from tidemark.lake.orphans import open_fresh
from tidemark.pipes.model.copying import Load
from tidemark.pipes.model.files import FileReport

__all__ = ["purge_files"]


def purge_files(
    load: Load, options: Mapping[str, str] | None, reports: Sequence[FileReport], say: Callable[[str], None]
) -> None:
    """Remove the files that were loaded. A file that cannot be removed is logged, and stays in the history.

    A second run finds nothing to do.
    """
    filesystem, root = open_fresh(load.location, options)
    for report in reports:
        if not report.status.has_rows:
            continue
        try:
            with storage_errors_named(f"{load.location}/{report.file}"):
                filesystem.rm_file(f"{root}/{report.file}")
        except FileNotFoundError:
            continue
        except (StorageRefused, StorageUnreachable) as error:
            say(f"could not remove {report.file}: {error.facts['problem']}")
