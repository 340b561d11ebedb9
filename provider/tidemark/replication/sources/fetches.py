"""How many rows of a table are fetched at once: as many as fit into memory, however large their values are.

A sample shows how wide rows are. If rows may be wide, those are fetched apart from the others, few at once. If more
bytes come than expected, a careful copy fetches each row alone that may be wide.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AT_ONCE", "MOST_ROWS", "WIDE", "Fetch", "RowSizes", "assumed_width", "fetches"]

MOST_ROWS = 10_000
AT_ONCE = 16 << 20  # bytes that a session fetches at once
WIDE = 64 << 10  # bytes from which on a row is fetched apart
_LIMIT = 4  # times as many bytes come in one answer at most
_PACKED_BEST = 32  # times as large as it is stored a value may be: what PostgreSQL packs best


@dataclass(frozen=True)
class RowSizes:
    """`widest`: bytes of the widest row of a sample, 0 without one; `mean`: of all its rows. `out_of_line`: if some
    values are stored so.
    """

    widest: int = 0
    out_of_line: bool = False
    mean: int = 0


@dataclass(frozen=True)
class Fetch:
    """One reading of the table: its rows with `condition` (of the column `bytes`), this many at once. `limit`: bytes in
    one answer above which the driver gives up. It is None if each row comes alone, since then nothing would be won.
    """

    condition: str
    rows: int
    limit: int | None


def fetches(sizes: RowSizes, *, careful: bool = False, most: int = MOST_ROWS) -> tuple[Fetch, ...]:
    """How to read it; the conditions part all rows. `careful`: more bytes came than expected. So each row comes alone
    that would be wide if it was packed as well as can be. `most`: rows at a time.
    """
    if careful:
        known = WIDE // _PACKED_BEST
        return (_fetch(f"bytes <= {known}", WIDE, most), Fetch(f"bytes > {known}", 1, None))
    if not sizes.out_of_line and sizes.widest <= WIDE:
        return (_fetch("true", sizes.widest, most),)
    narrow, wide = min(sizes.widest, WIDE), max(sizes.widest, WIDE)
    return (_fetch(f"bytes <= {WIDE}", narrow, most), _fetch(f"bytes > {WIDE}", wide, most))


def assumed_width(sizes: RowSizes, *, careful: bool = False) -> int:
    """The bytes of a row that who writes the table should be ready for."""
    if careful:
        return AT_ONCE
    return max(sizes.widest, WIDE) if sizes.out_of_line else sizes.widest


def _fetch(condition: str, widest: int, most: int) -> Fetch:
    rows = max(1, min(most, AT_ONCE // max(widest, 1)))
    return Fetch(condition, rows, AT_ONCE * _LIMIT if rows > 1 else None)
