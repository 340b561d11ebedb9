"""The address of a source database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["PORTS", "SourceAddress", "SourceKind"]


class SourceKind(StrEnum):
    """The database that is replicated."""

    POSTGRESQL = "postgresql"
    MYSQL = "mysql"
    MARIADB = "mariadb"
    DEBEZIUM = "debezium"  # envelopes that a Debezium has landed, of any of its databases
    EVENT_FILES = "event_files"  # files in Datastream's layout, of any of its databases

    @property
    def logs_by_file(self) -> bool:
        """Whether its log is binary log files, as MySQL and MariaDB have them."""
        return self in (SourceKind.MYSQL, SourceKind.MARIADB)

    @property
    def folds_columns(self) -> bool:
        """Whether names of columns are the same in any case."""
        return self.logs_by_file

    @property
    def is_landed(self) -> bool:
        """Whether others have read the database, and landed its rows and changes. There is no catalog then, and nothing
        to copy.
        """
        return self in (SourceKind.DEBEZIUM, SourceKind.EVENT_FILES)


PORTS: Mapping[SourceKind, int] = {SourceKind.POSTGRESQL: 5432, SourceKind.MYSQL: 3306, SourceKind.MARIADB: 3306}
"""The port of a database, if an address has none."""


@dataclass(frozen=True)
class SourceAddress:
    """The address and credentials of a source. Only the environment carries it; nothing prints a password."""

    kind: SourceKind
    host: str
    port: int
    database: str
    user: str
    password: str | None = field(default=None, repr=False)
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)  # sslmode, sslpassword, connect_timeout …
    hash_secret: str | None = field(default=None, repr=False)  # for the hashes of columns
    conn_id: str | None = field(default=None, compare=False)  # the connection that has the address, for messages
