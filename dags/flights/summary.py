"""The lines of a report in the task log. Pure text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["carrier_table", "replay_line", "summary_lines"]


def replay_line(replayed: Mapping[str, Any]) -> str:
    """One line on the replay's changes of the board."""
    if not replayed["hours"]:
        return "The year is over: every flight of 2013 has landed, the board does not change any more."
    return (
        f"Replayed {replayed['since'][:16]} to {replayed['until'][:16]} UTC: {replayed['hours']} commits, "
        f"{replayed['changes']:,} changes of flights, {replayed['cancelled']} cancelled."
    )


def summary_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """The whole summary, line by line."""
    yield f"{report['flights']:,} flights on the mirror, {report['landed']:,} of them landed"
    yield from carrier_table(report["carriers"])
    if worst := report["worst"]:
        yield (
            f"Worst delay: {worst['arrival_delay']} minutes, {worst['flight']} "
            f"{worst['origin']} to {worst['dest']} on {worst['service_date']}"
        )
    yield f"Mirror against source as of version {report['version']}: {_verdict(report['mirror_differs'])}"
    yield (
        f"History of {report['history_rows']:,} changes, added up, against the same: "
        f"{_verdict(report['history_differs'])}"
    )


def carrier_table(carriers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A table with one line for each carrier; times in minutes."""
    line = "{:<8} {:>7} {:>11} {:>6} {:>7}".format
    yield line("carrier", "landed", "mean delay", "late", "worst")
    for one in carriers:
        late = f"{one['late_percent']} %"
        yield line(one["carrier"], f"{one['landed']:,}", f"{one['mean_delay']:+.1f}", late, one["worst_delay"])


def _verdict(differs: int) -> str:
    return "equal, row for row" if differs == 0 else f"{differs:,} ROWS DIFFER"
