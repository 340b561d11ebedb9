"""Places in the logs of sources, and the positions that stand for them, which sort as texts.

A log sequence number of PostgreSQL is 16 hexadecimal digits. A place in binary log files is
`0001-0000000003-000000004711-mysql-bin`. Its parts are an epoch, the number of the file, the offset in it, and the
common name of the files. The epoch is 1, and one more after each failover: the files of another server continue the
same event log.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace

from tidemark.errors import InvalidArgument
from tidemark.replication.model.replication import LogPosition
from tidemark.replication.planning.debezium_marks import time_text

__all__ = [
    "NOW",
    "FilePlace",
    "epoch_of",
    "lsn_of",
    "lsn_text",
    "parse_file_place",
    "parse_lsn",
    "place_of",
    "position_of_lsn",
    "position_text",
    "require_position",
]

NOW = "now"
"""In place of a position: what the source will commit from here on."""

_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")
_POSITION = re.compile(r"[0-9A-F]{16}")
_END = 1 << 64
_IN_FILES = re.compile(r"(\d{4})-(\d{10})-(\d{12})-(.+)", re.S)
_FILE = re.compile(r"(.+)\.(\d{1,10})", re.S)
_EPOCH = 1


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
            argument="position",
            value=position.commit,
            problem="is not a position of PostgreSQL (16 hexadecimal digits)",
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


@dataclass(frozen=True)
class FilePlace:
    """A place in binary log files. `base`: their name without its number. `offset`: the byte of file `number` at which
    an event begins.
    """

    base: str
    number: int
    offset: int
    epoch: int = _EPOCH

    @property
    def file(self) -> str:
        """`mysql-bin.000003`; a server writes numbers with six digits at least."""
        return f"{self.base}.{self.number:06d}"

    @property
    def text(self) -> str:
        """As people write it: `mysql-bin.000003:4711`."""
        return f"{self.file}:{self.offset}"

    @property
    def position(self) -> LogPosition:
        """The position before the transaction that begins here."""
        return LogPosition(f"{self.epoch:04d}-{self.number:010d}-{self.offset:012d}-{self.base}")

    def in_epoch(self, epoch: int) -> FilePlace:
        """The same place, of another epoch."""
        return replace(self, epoch=epoch)

    @classmethod
    def of_file(cls, file: str, offset: int, epoch: int = _EPOCH) -> FilePlace:
        """By the name of a file. Raises InvalidArgument."""
        found = _FILE.fullmatch(file)
        if found is None:
            raise InvalidArgument(
                argument="position", value=file, problem="a binary log is named like mysql-bin.000003"
            )
        return cls(found[1], int(found[2]), offset, epoch)


def place_of(position: LogPosition) -> FilePlace | None:
    """The inverse of `FilePlace.position`; None for START. Raises InvalidArgument for a position of another source."""
    if not position.commit:
        return None
    found = _IN_FILES.fullmatch(position.commit)
    if found is None:
        problem = "is not a position of MySQL or MariaDB"
        raise InvalidArgument(argument="position", value=position.commit, problem=problem)
    return FilePlace(found[4], int(found[2]), int(found[3]), int(found[1]))


def epoch_of(position: LogPosition | None) -> int:
    """The epoch of a place in binary log files; 1 for START and for positions of other sources."""
    found = None if position is None else _IN_FILES.fullmatch(position.commit)
    return _EPOCH if found is None else int(found[1])


def parse_file_place(text: str) -> FilePlace:
    """A place as people write it: `mysql-bin.000003:4711`. The form of the control store is read, too. Raises
    InvalidArgument.
    """
    asked = text.strip()
    if _IN_FILES.fullmatch(asked) and (place := place_of(LogPosition(asked))) is not None:
        return place
    file, _, offset = asked.rpartition(":")
    if not file or not re.fullmatch(r"\d{1,12}", offset) or not _FILE.fullmatch(file):
        raise InvalidArgument(argument="position", value=text, problem="a position looks like mysql-bin.000003:4711")
    return FilePlace.of_file(file, int(offset))


def require_position(text: str) -> None:
    """That it is a position of some kind of source, as people write it. Raises InvalidArgument."""
    for parse in (parse_lsn, parse_file_place):
        with suppress(InvalidArgument):
            parse(text)
            return
    problem = "a position looks like 16/B374D848 (PostgreSQL) or mysql-bin.000003:4711 (MySQL, MariaDB)"
    raise InvalidArgument(argument="position", value=text, problem=problem)


def position_text(position: LogPosition) -> str:
    """As the source writes it, so that it can be given back: `16/B374D848`, or `mysql-bin.000003:4711`. `#3` behind it
    means before the third event of that transaction. Landed envelopes have the time of a look, which cannot be given
    back. A position of another kind is given as it is.
    """
    if (of_look := time_text(position.commit)) is not None:
        return of_look
    if _IN_FILES.fullmatch(position.commit) and (place := place_of(position)) is not None:
        text = place.text
    else:
        known = not position.commit or _POSITION.fullmatch(position.commit)
        text = lsn_text(lsn_of(position)) if known else position.commit
    return f"{text}#{position.sequence}" if position.sequence else text
