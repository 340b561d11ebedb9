"""Delta tables that many tests begin with: Spark makes each once in a process, the others are copies."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.lake.delta_log import DeltaLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["put_made", "put_table"]

_HOME = tempfile.TemporaryDirectory(prefix="tidemark-templates-", ignore_cleanup_errors=True)
_MADE: dict[Hashable, Path] = {}


def put_table(spark: SparkSession, path: Path, *statements: str) -> None:
    """The table that `statements` make at `path`, which they name {t}; see `put_made`."""

    def make() -> None:
        for statement in statements:
            spark.sql(statement.replace("{t}", "delta.`" + str(path).replace("`", "``") + "`"))

    put_made(spark, path, statements, make)


def put_made(spark: SparkSession, path: Path, key: Hashable, make: Callable[[], object]) -> None:
    """The table at `path` that `make` made when it was called first for this `key`.

    A copy is a table of its own: it has another id, its commits are of now. A session with settings of its own makes
    the table itself.
    """
    from pyspark.sql import SparkSession

    shared = spark is SparkSession._instantiatedSession
    template = _MADE.get(key) if shared else None
    if template is not None:
        _copy(template, path)
        return
    make()
    if shared:
        _MADE[key] = Path(_HOME.name) / str(len(_MADE))
        shutil.copytree(path, _MADE[key], ignore=shutil.ignore_patterns(".*.crc"))


def _copy(template: Path, path: Path) -> None:
    """Without the sums of the local file system, which another id would make wrong."""
    shutil.copytree(template, path, dirs_exist_ok=True)
    log = path / "_delta_log"
    before, after = DeltaLog.open(str(template)).state().table_id, str(uuid.uuid4())
    commits = sorted(log.glob("*.json"))
    for file in (*commits, *log.glob("*.crc")):
        file.write_text(file.read_text().replace(before, after))
    first = time.time() - len(commits) / 1000
    for number, commit in enumerate(commits):
        os.utime(commit, (first + number / 1000,) * 2)
