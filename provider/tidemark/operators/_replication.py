"""The common part of the operators of replications: how names are given, who acts, and the places of tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow.sdk import AssetAlias, BaseOperatorLink

from tidemark.assets import replicated_alias
from tidemark.errors import InvalidArgument
from tidemark.links.streams import SparkUiLink
from tidemark.links.yarn import YarnLink
from tidemark.operators._base import TidemarkOperator, flag_of, key_of, seconds_of, whole_number_of

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import BaseOperator, Context

    from tidemark.control.store import ControlStore
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.model.source_address import SourceAddress, SourceKind
    from tidemark.model.streams import TableRef
    from tidemark.replication.model.replication import (
        Actor,
        LogPosition,
        ObjectName,
        ReplicationOptions,
        Selection,
    )

__all__ = [
    "ReplicationOperator",
    "Transfer",
    "announce",
    "by_of",
    "default_outlets",
    "jdbc_packages",
    "label_of",
    "lineage_of",
    "most_mapped",
    "names_of",
    "options_of",
    "patterns_of",
    "place_text",
    "require_conn_id",
    "selection_of",
    "targets_of",
]

Names = str | Sequence[str | Sequence[str]] | None
_NAMED = 3  # objects in the label of a task; Airflow keeps 250 characters of it
_OPTIONS = (
    "invalid_values",
    "backfill",
    "backfill_exclude",
    "numeric_as",
    "max_events",
    "gives_way_after",
    "without_key",
    "mask_columns",
    "hash_columns",
    "target_table",
    "append_only_tables",
    "merge_tables",
    "fetch_rows",
    "publication",
    "slot",
)


class ReplicationOperator(TidemarkOperator):
    """An operator of a replication. It takes no window of a stream, so its only link is Spark's."""

    operator_extra_links: Collection[BaseOperatorLink] = (SparkUiLink(), YarnLink())


@dataclass(frozen=True)
class Transfer:
    """The data that a task has moved, for lineage. `tables`: those of the source, if `address` is set; else `read` was
    read.
    """

    written: str
    rows: int
    read: str | None = None
    address: SourceAddress | None = field(default=None, repr=False)
    tables: tuple[str, ...] = ()

    @classmethod
    def from_source(cls, address: SourceAddress, tables: Sequence[str], written: str, rows: int) -> Transfer:
        """Rows of tables of the database."""
        return cls(written, rows, address=address, tables=tuple(tables))

    @classmethod
    def from_log(cls, event_log: str, written: str, rows: int) -> Transfer:
        """Rows that events of the event log have touched."""
        return cls(written, rows, read=event_log)

    def lineage(self) -> OperatorLineage[Any, Any]:
        """As OpenLineage has it."""
        from tidemark.lineage.datasets import name_of
        from tidemark.lineage.replication import lineage_of_move, source_dataset

        inputs = [] if self.address is None else [source_dataset(self.address, name) for name in self.tables]
        return lineage_of_move([*inputs, *([name_of(self.read)] if self.read else [])], self.written, self.rows)


def lineage_of(transfers: Sequence[Transfer]) -> OperatorLineage[Any, Any] | None:
    """Of all of them together; None if there is none."""
    from airflow.providers.openlineage.extractors import OperatorLineage

    each = [one.lineage() for one in transfers]
    inputs = {(one.namespace, one.name): one for lineage in each for one in lineage.inputs}
    outputs = {(one.namespace, one.name): one for lineage in each for one in lineage.outputs}
    return OperatorLineage(inputs=list(inputs.values()), outputs=list(outputs.values())) if each else None


def announce(task: BaseOperator, context: Context, replication: str, object_name: str, facts: dict[str, Any]) -> None:
    """An event of the object's own asset, stored together with the task's success."""
    from tidemark.assets import replicated_asset

    asset = replicated_asset(replication, object_name)
    for outlet in task.outlets:
        if isinstance(outlet, AssetAlias):
            context["outlet_events"][outlet].add(asset, extra=facts)
        else:
            context["outlet_events"][outlet].extra = facts


def by_of(context: Context, why: str = "") -> Actor:
    """The task; the run tells a retry of it from another run."""
    from tidemark.replication.model.replication import Actor

    key = str(key_of(context))
    return Actor(who=key, why=why, run=key)


def default_outlets(replication: str) -> list[AssetAlias]:
    """The alias of the replication's objects, if its name is a constant. A templated name has none, since outlets are
    known at parse time.
    """
    return [] if "{{" in replication else [AssetAlias(replicated_alias(replication))]


def jdbc_packages(hook: TidemarkHook, kind: SourceKind) -> tuple[str, ...]:
    """The driver by which a backfill reads such a database. Spark fetches it. If the connection's `spark_packages` name
    that driver in a version of their own, there is nothing to add. A source that others have landed needs no driver.
    """
    from tidemark.model.spark import MARIADB_PACKAGE, POSTGRESQL_PACKAGE

    if kind.is_landed:
        return ()
    package = MARIADB_PACKAGE if kind.logs_by_file else POSTGRESQL_PACKAGE
    driver = package.rpartition(":")[0]
    named = (hook.settings.spark_packages or "").split(",")
    return () if any(one.strip().rpartition(":")[0] == driver for one in named) else (package,)


def names_of(argument: str, value: Names) -> tuple[str, ...]:
    """Names as a list, as a JSON array, or separated by commas, as templates render them; each once, in their order. An
    item of a list may be a list of names, as PrepareReplicationOperator returns it. Raises InvalidArgument.
    """
    given: Any = value
    if isinstance(given, str):
        text = given.strip()
        if text.lower() in ("", "none", "null"):
            return ()
        try:
            given = json.loads(text.replace("'", '"')) if text.startswith("[") else text.split(",")
        except ValueError as error:
            raise InvalidArgument(argument=argument, value=value, problem="it is not a JSON array of names") from error
    if isinstance(given, list | tuple):
        given = [name for one in given for name in (one if isinstance(one, list | tuple) else [one])]
    if not isinstance(given, list | None) or not all(isinstance(name, str) for name in given or ()):
        raise InvalidArgument(argument=argument, value=value, problem="give a name or a list of names")
    return tuple(dict.fromkeys(name.strip() for name in given or () if name.strip()))


def label_of(names: Sequence[str]) -> str:
    """The names, for the map index; of many the first ones."""
    if len(names) <= _NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} others"


def patterns_of(argument: str, value: Names) -> tuple[str, ...]:
    """Names of `schema`, `schema.table` or `schema.table.column`, each with `*`. Raises InvalidArgument."""
    from tidemark.replication.planning.patterns import parts_of

    names = names_of(argument, value)
    if bad := [name for name in names if not 1 <= len(parts_of(name)) <= 3]:
        problem = (
            f"{bad[0]!r} is not a pattern: give schema, schema.table or schema.table.column, each with * if need be"
        )
        raise InvalidArgument(argument=argument, value=value, problem=problem)
    return names


def selection_of(include: Names, exclude: Names) -> Selection:
    """Raises InvalidArgument."""
    from tidemark.replication.model.replication import Selection

    return Selection(patterns_of("include", include), patterns_of("exclude", exclude))


def options_of(target: str, mode: str, given: Mapping[str, Any] | None) -> ReplicationOptions:
    """Raises InvalidArgument for an unknown option, and for a value that it does not take."""
    from tidemark.replication.model.replication import ReplicationOptions, WriteMode
    from tidemark.replication.planning.options import require_options

    if given is not None and not isinstance(given, Mapping):
        raise InvalidArgument(argument="options", value=given, problem="give a mapping from options to values")
    unknown = sorted(set(given or ()) - set(_OPTIONS))
    if unknown:
        problem = f"there is no option {', '.join(unknown)}; these exist: {', '.join(_OPTIONS)}"
        raise InvalidArgument(argument="options", value=sorted(given or ()), problem=problem)
    if not isinstance(target, str) or not target.strip():
        raise InvalidArgument(argument="target", value=target, problem="name a schema of the lake, or a place")
    asked = {name: _option(name, value) for name, value in (given or {}).items() if value not in (None, "", "None")}
    options = ReplicationOptions(target=target.strip(), mode=_one_of("mode", mode, WriteMode), **asked)
    require_options(options)
    return options


def _option(name: str, value: Any) -> Any:
    from tidemark.replication.model.replication import InvalidValues, WriteMode

    read: Mapping[str, Callable[[], Any]] = {
        "invalid_values": lambda: _one_of(name, value, InvalidValues),
        "backfill": lambda: flag_of(name, value),
        "backfill_exclude": lambda: names_of(name, value),
        "numeric_as": lambda: str(value),
        "max_events": lambda: whole_number_of(name, value),
        "gives_way_after": lambda: seconds_of(name, value).total_seconds(),
        "without_key": lambda: _one_of(name, value, WriteMode),
        "mask_columns": lambda: names_of(name, value),
        "hash_columns": lambda: names_of(name, value),
        "target_table": lambda: str(value).strip(),
        "append_only_tables": lambda: names_of(name, value),
        "merge_tables": lambda: names_of(name, value),
        "fetch_rows": lambda: whole_number_of(name, value),
        "publication": lambda: str(value).strip(),
        "slot": lambda: str(value).strip(),
    }
    return read[name]()


def _one_of(argument: str, value: Any, kind: Any) -> Any:
    text = str(getattr(value, "value", value)).strip().lower()
    try:
        return kind(text)
    except ValueError as error:
        problem = f"it must be one of {', '.join(member.value for member in kind)}"
        raise InvalidArgument(argument=argument, value=value, problem=problem) from error


def targets_of(hook: TidemarkHook, store: ControlStore, name: str) -> Callable[[ObjectName], TableRef]:
    """The target of a new object: its table in the replication's target, by default `schema_table`. It need not exist,
    so it has no id yet. Raises InvalidArgument for a place with a password in it.
    """
    from tidemark.model.streams import Addressing, TableRef
    from tidemark.replication.planning.target_names import table_of, target_name
    from tidemark.replication.worker.definitions import get_replication

    options = get_replication(store, name).options
    target = options.target

    def place(of: ObjectName) -> TableRef:
        named = target_name(target, table_of(of, options.target_table))
        addressing = Addressing.PATH if "/" in target else Addressing.LAKE
        return TableRef(name=named, path=hook.table_path(named), table_id="", addressing=addressing)

    return place


def require_conn_id(argument: str, value: str) -> None:
    """Say nothing if it may be the id of a connection. Raises InvalidArgument."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidArgument(argument=argument, value=value, problem="name the connection of the database")


def most_mapped() -> int:
    """The length of the longest list over which Airflow maps a task."""
    from airflow.sdk.configuration import conf

    return int(conf.getint("core", "max_map_length", fallback=1024))


def place_text(position: LogPosition | None) -> str | None:
    """A position as the source writes it, and RecoverReplicationOperator takes it; None before the start."""
    from tidemark.replication.planning.positions import position_text

    return None if position is None else position_text(position)
