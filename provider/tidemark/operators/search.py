"""Search optimization of tables, and its upkeep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidArgument
from tidemark.operators._base import flag_of, is_left_out, key_of
from tidemark.operators._constants import check_constants
from tidemark.operators._spark import SparkOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.control.store import ControlStore
    from tidemark.model.streams import TableRef
    from tidemark.search.model.paths import Search
    from tidemark.search.model.requests import Target

__all__ = ["AlterSearchOptimizationOperator", "KeepSearchPathOperator"]


class AlterSearchOptimizationOperator(SparkOperator):
    """Adds search paths to a table, or drops them. The next upkeep builds them, and removes the rows of dropped ones.

    A second run changes nothing. A drop finds a table that is gone, by the path or the name that it had. A job starts
    only for a table of Spark's catalog. Returns {table, paths}, the paths that the table has now. Raises SearchRefused,
    SearchChanged, NotYetSupported, SqlCompilationError, TableNotFound.

    :param table: name or path of the table. (templated)
    :param on: the paths, `EQUALITY(a, b.c), SUBSTRING(d), RANGE(e), ORDER(f)`. None: equality on each column that can
        be searched, or all paths in a drop. (templated)
    :param drop: drop the paths instead of adding them. (templated)
    """

    template_fields: Sequence[str] = ("table", "on", "drop", "conn_id")

    def __init__(self, *, table: str, on: str | None = None, drop: bool | str = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.on = on
        self.drop = drop
        check_constants(self, on=_targets_of, drop=flag_of)

    def execute(self, context: Context) -> dict[str, Any]:
        """The paths of the table."""
        from tidemark.search.worker.definitions import add_search
        from tidemark.streams.worker.catalog import asking_the_catalog

        store, by = self.hook.open_store(), str(key_of(context))
        targets = _targets_of("on", self.on)
        find = asking_the_catalog(self.hook.table, self.runtime)
        if flag_of("drop", self.drop):
            search = self._dropped(store, find, targets, by=by)
        else:
            found = find(self.table)
            metadata = self.hook.open_table(found).state().metadata
            search = add_search(store, found, metadata, targets, by=by)
        paths = [] if search is None else [path.said for path in search.paths]
        self.log.info("%s has the search paths %s.", self.table, ", ".join(paths) or "none")
        return {"table": self.table, "paths": paths}

    def _dropped(
        self, store: ControlStore, find: Callable[[str], TableRef], targets: tuple[Target, ...], *, by: str
    ) -> Search | None:
        """The paths that a table has left, which may be gone itself."""
        from tidemark.search.worker.definitions import drop_again, path_to_drop

        path = path_to_drop(store, self.table, self.hook.place_of(self.table), lambda name: find(name).path)
        left, gone = drop_again(store, path, self.table, targets, by=by)
        for target in gone:
            self.log.info("%s has no path %s to drop.", self.table, target.said)
        return left


class KeepSearchPathOperator(SparkOperator):
    """Lets the search table of a table cover its newest version: new files are added, and dropped paths removed.

    Without new files no job starts. If more than half of the covered files were rewritten, all is built again, once.
    A retry, also after a kill, covers what is left. Returns {table, version, commits, files, rows, bytes, seconds}: the
    version of the table, and the work of the commits. Raises SearchNotFound, TableNotFound.

    :param table: name or path of the table. (templated)
    :param gib_per_commit: the GiB of files that one commit covers. (templated)
    """

    template_fields: Sequence[str] = ("table", "gib_per_commit", "conn_id")

    def __init__(self, *, table: str, gib_per_commit: float | str = 8, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.gib_per_commit = gib_per_commit
        check_constants(self, gib_per_commit=_bytes_of)

    def execute(self, context: Context) -> dict[str, Any]:
        """The upkeep."""
        from tidemark.search.worker.upkeep import keep_search

        name, most = self.table, _bytes_of("gib_per_commit", self.gib_per_commit)
        path = self.table_uri(context, name)
        done = keep_search(self.runtime(), path, name, key=key_of(context), most_bytes=most)
        facts = {
            "table": name,
            "version": done.base_version,
            "commits": len(done.commits),
            "files": sum(one.mark.files for one in done.commits),
            "rows": sum(one.rows for one in done.commits),
            "bytes": sum(one.size for one in done.commits),
            "seconds": round(sum(one.seconds for one in done.commits), 3),
        }
        self.log.info("%(table)s: version %(version)s is covered by %(commits)s commits, %(files)s files.", facts)
        return facts


def _targets_of(argument: str, value: object) -> tuple[Target, ...]:
    from tidemark.search.planning.sql import parse_targets

    if value is None or is_left_out(value):
        return ()
    if not isinstance(value, str):
        raise InvalidArgument(argument=argument, value=value, problem="it must be a text, such as EQUALITY(id)")
    return parse_targets(value)


def _bytes_of(argument: str, value: object) -> int:
    try:
        number = float(str(value))
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise InvalidArgument(argument=argument, value=value, problem="it must be a number above 0")
    return int(number * (1 << 30)) or 1
