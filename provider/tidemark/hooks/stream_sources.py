"""The sources of streams, found by name with one connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemark.control.store import ControlStore
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.model.statements import TransactionKey
    from tidemark.model.streams import TableRef
    from tidemark.streams.planning.stream_sql.statements import ObjectKind
    from tidemark.streams.worker.defining import Sources
    from tidemark.streams.worker.runtime import Runtime

__all__ = ["kind_of", "stream_sources"]


def stream_sources(
    hook: TidemarkHook,
    runtime: Callable[[], Runtime],
    *,
    key: TransactionKey | None = None,
    turn_on: Callable[[TableRef], None] | None = None,
) -> Sources:
    """The sources by the names that the hook knows; for one of Spark's catalog a job is run through `runtime`."""
    from tidemark.streams.worker.catalog import finding_sources
    from tidemark.streams.worker.defining import Sources

    return Sources(finding_sources(hook.table, hook.external_table, runtime, key=key), hook.open_table, turn_on)


def kind_of(hook: TidemarkHook, store: ControlStore, name: str, asked: ObjectKind) -> str | None:
    """TABLE, EXTERNAL TABLE or STREAM, as a task finds it without a job. If both kinds of tables have the name, it is
    the one that was `asked` for. None if the name leads nowhere, or if only Spark's catalog knows it.
    """
    from tidemark.errors import TidemarkError
    from tidemark.lake.external_tables import find_external_table
    from tidemark.streams.planning.stream_sql.statements import ObjectKind
    from tidemark.streams.worker.defining import find_stream

    def is_table() -> bool:
        try:
            hook.table(name)
        except TidemarkError:
            return False
        return True

    def is_files() -> bool:
        settings = hook.settings
        return find_external_table(settings.workspace, name, settings.storage_options) is not None

    looks = [(ObjectKind.TABLE, is_table), (ObjectKind.EXTERNAL_TABLE, is_files)]
    if asked in (ObjectKind.EXTERNAL_TABLE, ObjectKind.STAGE):
        looks.reverse()
    found = next((kind for kind, is_there in looks if is_there()), None)
    return "STREAM" if found is None and find_stream(store, name) is not None else found
