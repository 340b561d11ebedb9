"""Which chunks are read by one task, so that neither Spark's start nor Airflow's limit on mapped tasks rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidemark.change_streams.model.change_streams import Chunk
from tidemark.change_streams.model.sinks import Bundle

__all__ = ["in_bundles", "label_of", "most_chunks"]

KeyRange = tuple[int, int]


def most_chunks(max_chunks: int | None, *, chunks_per_task: int, max_tasks: int) -> int:
    """How many chunks may be planned, so that no more than `max_tasks` tasks are needed for them."""
    most = chunks_per_task * max_tasks
    return most if max_chunks is None else min(max_chunks, most)


def in_bundles(
    chunks: Sequence[Chunk], ranges: Mapping[str, KeyRange], *, chunks_per_task: int, rows_per_task: int, max_tasks: int
) -> tuple[Bundle, ...]:
    """All chunks, each in one bundle, those of a token together and in order; tokens that lie side by side share one.

    A bundle ends before the token that would exceed `chunks_per_task` or `rows_per_task`; it has one token at least. If
    that makes more than `max_tasks`, rows do not count, and tokens are dealt out evenly.
    """
    tokens: dict[str, list[Chunk]] = {}
    for chunk in sorted(chunks, key=lambda one: (ranges[one.token], one.token, one.number)):
        tokens.setdefault(chunk.token, []).append(chunk)
    groups = _filled(list(tokens.values()), chunks_per_task, rows_per_task)
    if len(groups) > max_tasks:
        size = -(-len(tokens) // max_tasks)
        each = list(tokens.values())
        groups = [each[start : start + size] for start in range(0, len(each), size)]
    flat = ([chunk for token in group for chunk in token] for group in groups)
    return tuple(Bundle(label_of([ranges[c.token] for c in group]), tuple(group)) for group in flat)


def _filled(tokens: Sequence[list[Chunk]], chunks_per_task: int, rows_per_task: int) -> list[list[list[Chunk]]]:
    groups: list[list[list[Chunk]]] = []
    chunks = rows = 0
    for token in tokens:
        more = sum(chunk.expected for chunk in token)
        if not groups or chunks + len(token) > chunks_per_task or rows + more > rows_per_task:
            groups.append([])
            chunks = rows = 0
        groups[-1].append(token)
        chunks, rows = chunks + len(token), rows + more
    return groups


def label_of(ranges: Sequence[KeyRange]) -> str:
    """`[0000, 8000)`: the bounds in hexadecimal; ranges with gaps between them are listed, the first three."""
    joined: list[KeyRange] = []
    for lo, hi in sorted(set(ranges)):
        if joined and joined[-1][1] >= lo:
            joined[-1] = (joined[-1][0], max(hi, joined[-1][1]))
        else:
            joined.append((lo, hi))
    more = f" and {len(joined) - 3} more" if len(joined) > 3 else ""
    return ", ".join(f"[{lo:04x}, {hi:04x})" for lo, hi in joined[:3]) + more
