"""PostgreSQL's log sequence numbers, and the positions that stand for them: 16 hexadecimal digits, which sort."""

from __future__ import annotations

import re

from tidemark.errors import InvalidArgument
from tidemark.replication.model.replication import LogPosition

__all__ = ["NOW", "lsn_of", "lsn_text", "parse_lsn", "position_of_lsn", "position_text"]

NOW = "now"
"""In place of a position: what the source will commit from here on."""

_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")
_POSITION = re.compile(r"[0-9A-F]{16}")
_END = 1 << 64


def position_of_lsn(lsn: int) -> LogPosition:
    """The place before the transaction with its commit record at `lsn`. Raises InvalidArgument."""
    if not 0 <= lsn < _END:
        raise InvalidArgument(argument="lsn", value=lsn, problem="a log sequence number has 64 bits and no sign")
    return LogPosition(f"{lsn:016X}")


def lsn_of(position: LogPosition) -> int:
    """The inverse of `position_of_lsn`; of START it is 0. Raises InvalidArgument for a position of another source."""
    if not position.commit:
        return 0
    if not _POSITION.fullmatch(position.commit):
        raise InvalidArgument(
            argument="position", value=position.commit, problem="is no position of a PostgreSQL (16 hexadecimal digits)"
        )
    return int(position.commit, 16)


def parse_lsn(text: str) -> int:
    """An LSN as people and PostgreSQL write it: 16/B374D848. The form of the control store and event logs, 16
    hexadecimal digits, is read, too. Raises InvalidArgument.
    """
    asked = text.strip()
    if _POSITION.fullmatch(asked.upper()):
        return int(asked, 16)
    found = _LSN.fullmatch(asked)
    if found is None:
        raise InvalidArgument(argument="lsn", value=text, problem="an LSN looks like 16/B374D848")
    return int(found[1], 16) << 32 | int(found[2], 16)


def lsn_text(lsn: int) -> str:
    """An LSN as PostgreSQL writes it. Raises InvalidArgument."""
    position_of_lsn(lsn)
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def position_text(position: LogPosition) -> str:
    """As the source writes it, so that it can be given back: `16/B374D848`. `#3` behind it means before the third event
    of that transaction. A position that is not of a PostgreSQL is given as it is.
    """
    known = not position.commit or _POSITION.fullmatch(position.commit)
    text = lsn_text(lsn_of(position)) if known else position.commit
    return f"{text}#{position.sequence}" if position.sequence else text
