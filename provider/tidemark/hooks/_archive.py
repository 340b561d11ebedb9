"""The Spark side as one zip file, so that a Spark image needs neither Tidemark nor Airflow."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tidemark

__all__ = ["forgetting_the_archive", "spark_side_archive"]

_TOOLS = ("errors", "jobs", "kafka", "lake", "model", "sql")
_ROOMS = (
    "acceleration",
    "change_streams",
    "changes",
    "channels",
    "clustering",
    "delivery",
    "materialized",
    "pipes",
    "replication",
    "results",
    "search",
    "streams",
)
_FLOORS = ("model", "planning", "sources", "driver")  # of each room; the other folders are the worker's
_MODULES = ("__init__.py", "failpoints.py")
_MADE = (1980, 1, 1, 0, 0, 0)  # the oldest time of a zip, so that equal content has equal bytes


def spark_side_archive(directory: Path) -> Path:
    """A zip of the modules that a driver needs, in `directory`, named by the hash of its content.

    It reads source files and imports nothing. Each call builds the zip and replaces any file of its name, so no foreign
    file is run. Idempotent: two calls at once both succeed.
    """
    sources = dict(_sources(Path(tidemark.__file__).parent))
    digest = hashlib.sha256()
    for name, content in sources.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    archive = directory / f"tidemark-{digest.hexdigest()[:16]}.zip"
    _write(archive, sources)
    return archive


@contextmanager
def forgetting_the_archive(directory: Path) -> Iterator[None]:
    """Deletes archives in `directory` after the context, since each failed job would keep one."""
    try:
        yield
    finally:
        for archive in directory.glob("tidemark-*.zip"):
            archive.unlink(missing_ok=True)


def _sources(package: Path) -> Iterator[tuple[str, bytes]]:
    files = [package / name for name in _MODULES]
    files += [file for tool in _TOOLS for file in (package / tool).rglob("*.py")]
    floors = [package / room / floor for room in _ROOMS for floor in _FLOORS]
    files += [package / room / "__init__.py" for room in _ROOMS]
    files += [file for floor in floors for file in floor.rglob("*.py")]
    files += [file for floor in floors if (file := floor.with_suffix(".py")).exists()]
    for file in sorted(files):
        yield f"tidemark/{file.relative_to(package).as_posix()}", file.read_bytes()


def _write(archive: Path, sources: dict[str, bytes]) -> None:
    archive.parent.mkdir(parents=True, exist_ok=True)
    unfinished = archive.with_name(f"{archive.name}.{os.getpid()}.tmp")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in sources.items():
            target.writestr(zipfile.ZipInfo(name, _MADE), content, zipfile.ZIP_DEFLATED)
    os.replace(unfinished, archive)
