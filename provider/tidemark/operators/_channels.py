"""Arguments and steps that operators of channels share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.model.statements import TransactionKey

__all__ = ["channel_of", "note_landing"]


def channel_of(argument: str, value: str) -> str:
    """The channel's name as it was given, with the quotes of an exact one. Raises InvalidArgument."""
    from tidemark.channels.planning.names import key_of

    key_of(value if isinstance(value, str) else "")
    return value


def note_landing(hook: TidemarkHook, table: str, key: TransactionKey, figures: Mapping[str, float]) -> None:
    """Keep in the control store whether the table has channels, so that lists and the page show it. `figures`: the work
    of the task, for its tab.

    A second run changes nothing but the sum of the figures. Raises TableNotFound, NotADeltaTable, CorruptLog,
    StoreError.
    """
    from tidemark.channels.worker.landing_tables import note_landing_table
    from tidemark.channels.worker.tables import channels_of

    source = hook.table(table)
    found = channels_of(hook.open_table(source), table)
    note_landing_table(hook.open_store(), source, found, by=str(key), figures=figures)
