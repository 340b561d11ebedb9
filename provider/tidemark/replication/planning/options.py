"""Which options a replication may have."""

from __future__ import annotations

import re
from dataclasses import replace

from tidemark.errors import InvalidArgument
from tidemark.model.source_address import SourceKind
from tidemark.replication.model.replication import ReplicationOptions
from tidemark.replication.planning.selection import require_column_patterns, require_patterns
from tidemark.replication.planning.target_names import require_target_table

__all__ = ["LONGEST_SOURCE_NAME", "options_of_kind", "require_options"]

_LONGEST_WAIT = 86400.0  # seconds for which others may wait for a backfill
LONGEST_SOURCE_NAME = 63  # bytes, of a slot or a publication
_SLOT_NAME = re.compile(rf"[a-z0-9_]{{1,{LONGEST_SOURCE_NAME}}}")
_NUMERIC = re.compile(r"decimal\((\d+),\s*(\d+)\)", re.IGNORECASE)


def options_of_kind(options: ReplicationOptions, kind: SourceKind) -> ReplicationOptions:
    """The options as a source of that kind has them. Sources that others have landed are not backfilled: they have the
    rows.
    """
    return replace(options, backfill=False) if kind.is_landed else options


def require_options(options: ReplicationOptions) -> None:
    """Say nothing if a replication can have them. Raises InvalidArgument."""
    for name in ("backfill_exclude", "append_only_tables", "merge_tables"):
        require_patterns(name, getattr(options, name), columns=False)
    require_column_patterns("mask_columns", options.mask_columns)
    require_column_patterns("hash_columns", options.hash_columns)
    if not options.target.strip():
        raise InvalidArgument(argument="target", value=options.target, problem="a schema of the lake, or a place")
    require_target_table(options.target_table)
    _require_existing(options)
    if options.fetch_rows is not None and options.fetch_rows < 1:
        raise InvalidArgument(argument="fetch_rows", value=options.fetch_rows, problem="one row at least")
    if options.max_events < 1:
        raise InvalidArgument(argument="max_events", value=options.max_events, problem="one event at least")
    if not 0 <= options.gives_way_after <= _LONGEST_WAIT:
        problem = "seconds, from 0 to those of a day"
        raise InvalidArgument(argument="gives_way_after", value=options.gives_way_after, problem=problem)
    fits = options.numeric_as is None or options.numeric_as == "string" or _is_decimal(options.numeric_as)
    if not fits:
        problem = "string, or decimal(p,s) with a precision from 1 to 38 and a scale up to it"
        raise InvalidArgument(argument="numeric_as", value=options.numeric_as, problem=problem)


def _require_existing(options: ReplicationOptions) -> None:
    """Names of a publication and a slot that the source can have. Raises InvalidArgument."""
    publication, slot = options.publication, options.slot
    if publication is not None and not 1 <= len(publication.encode()) <= LONGEST_SOURCE_NAME:
        problem = f"the name of a publication has 1 to {LONGEST_SOURCE_NAME} bytes"
        raise InvalidArgument(argument="publication", value=publication, problem=problem)
    if slot is not None and not _SLOT_NAME.fullmatch(slot):
        problem = f"the name of a slot has 1 to {LONGEST_SOURCE_NAME} lower-case letters, digits and underscores"
        raise InvalidArgument(argument="slot", value=slot, problem=problem)


def _is_decimal(text: str) -> bool:
    found = _NUMERIC.fullmatch(text.strip())
    return found is not None and 1 <= int(found[1]) <= 38 and int(found[2]) <= int(found[1])
