"""The tables that have channels, and the channels of a table, by their logs alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from tidemark.channels.model.channels import ChannelRecord
from tidemark.channels.planning.restores import records_now
from tidemark.errors import ChannelNotFound, LakeError, SourceError
from tidemark.lake.delta_log import DeltaLog

__all__ = ["channels_by_table", "channels_of"]

log = logging.getLogger(__name__)


def channels_by_table(names: Iterable[str], open_log: Callable[[str], DeltaLog]) -> dict[str, dict[str, ChannelRecord]]:
    """The channels of those tables that have any. An unreadable table is skipped, with a warning."""
    found = {}
    for name in names:
        try:
            if channels := channels_of(open_log(name), name):
                found[name] = channels
        except (SourceError, LakeError) as error:
            log.warning("Table %s is skipped: %s", name, error)
    return found


def channels_of(source: DeltaLog, table: str, keys: Sequence[str] = ()) -> dict[str, ChannelRecord]:
    """Key → record of the table's channels, in order of their keys; of those that are named, if any are.

    Raises ChannelNotFound, and what reading the log raises.
    """
    found = records_now(source)
    for key in keys:
        if key not in found:
            raise ChannelNotFound(channel=key, table=table, known=", ".join(sorted(found)) or "none")
    return {key: found[key] for key in sorted(keys or found)}
