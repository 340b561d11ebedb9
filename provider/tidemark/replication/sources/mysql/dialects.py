"""The differences between MySQL and MariaDB that a replication meets."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidemark.model.source_address import SourceKind

__all__ = ["MARIADB", "MYSQL", "Dialect", "dialect_of", "version_of"]

_NUMBERS = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


@dataclass(frozen=True)
class Dialect:
    """`log_status`: statements that answer with file and position of the log's end; the first that the server knows
    counts. `oldest`: version that is supported. `widest_number`: characters of a DOUBLE in a query without an exponent.
    """

    kind: SourceKind
    name: str
    oldest: tuple[int, int, int]
    log_status: tuple[str, ...]
    widest_number: int


MYSQL = Dialect(SourceKind.MYSQL, "MySQL", (8, 0, 14), ("SHOW BINARY LOG STATUS", "SHOW MASTER STATUS"), 24)
MARIADB = Dialect(SourceKind.MARIADB, "MariaDB", (10, 11, 0), ("SHOW MASTER STATUS",), 400)


def dialect_of(version: str) -> Dialect:
    """By what a server says of itself when somebody connects."""
    return MARIADB if "mariadb" in version.lower() else MYSQL


def version_of(version: str) -> tuple[int, int, int]:
    """`5.5.5-10.11.6-MariaDB-log` is 10.11.6: old clients got another number in front."""
    found = _NUMBERS.search(version.removeprefix("5.5.5-"))
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else (0, 0, 0)
