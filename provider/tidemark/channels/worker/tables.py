"""The tables that have channels."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from tidemark.channels.planning.listing import records_of
from tidemark.errors import LakeError, SourceError
from tidemark.lake.delta_log import DeltaLog

__all__ = ["tables_with_channels"]

log = logging.getLogger(__name__)


def tables_with_channels(names: Iterable[str], open_log: Callable[[str], DeltaLog]) -> list[str]:
    """Those of the tables that have a channel, by their logs. An unreadable table is skipped, with a warning."""
    found = []
    for name in names:
        try:
            if records_of(open_log(name).state()):
                found.append(name)
        except (SourceError, LakeError) as error:
            log.warning("Table %s is skipped: %s", name, error)
    return found
