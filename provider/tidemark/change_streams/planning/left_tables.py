"""Tables that a stream FOR ALL watches no longer, and the versions up to which they are captured."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.change_streams.model.change_streams import LeftTable, WatchedTable

__all__ = ["MOST_LEFT", "left_now"]

MOST_LEFT = 1_000  # each batch has them all


def left_now(
    before: Sequence[LeftTable], watched: Sequence[WatchedTable], now: Sequence[WatchedTable]
) -> tuple[LeftTable, ...]:
    """All that are not watched `now`, the latest last: of those known `before`, and of those `watched` until now."""
    there = {one.table.table_id for one in now}
    later = {one.table.table_id: one.captured for one in watched if one.table.table_id not in there}
    kept = [one for one in before if one.table_id not in there and one.table_id not in later]
    return (*kept, *(LeftTable(table_id, captured) for table_id, captured in later.items()))
