"""Answers of queries, the tables that they were computed from, and the reasons why none is reused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

__all__ = [
    "DEFAULT_RULES",
    "TIME_ZONE",
    "Leaf",
    "Miss",
    "ReuseRules",
    "StoredAnswer",
    "Why",
    "WrittenAnswer",
]

TIME_ZONE = "spark.sql.session.timeZone"


class Why(StrEnum):
    """The reasons why a query was not answered by an earlier answer."""

    OFF = "off"
    NOT_UNDERSTOOD = "not_understood"
    NON_DETERMINISTIC = "non_deterministic"
    CLOCK = "clock"
    SESSION = "session"
    FUNCTION = "function"
    TABLE_FUNCTION = "table_function"
    FILE_METADATA = "file_metadata"
    STREAM = "stream"
    VIEW = "view"
    NOT_A_TABLE = "not_a_table"
    TIME_TRAVEL = "time_travel"
    SETTINGS = "settings"
    TYPE = "type"
    LARGE = "large"
    FIRST = "first"
    CHANGED = "changed"
    EXPIRED = "expired"
    EVICTED = "evicted"
    FORGOTTEN = "forgotten"
    LOST = "lost"


@dataclass(frozen=True)
class Miss:
    """The reason why a query is not answered without Spark, as a word and in a sentence.

    `stores`: whether its answer may be kept for the next time.
    """

    why: Why
    text: str

    @property
    def stores(self) -> bool:
        """Whether the same query can be a hit once it has run."""
        return self.why in (Why.FIRST, Why.CHANGED, Why.EXPIRED, Why.EVICTED, Why.FORGOTTEN, Why.LOST)


@dataclass(frozen=True)
class Leaf:
    """A table that a query reads. `version`: the version that is read. `content`: the one that is part of the key. It
    is the last one that changed rows or columns, or `version` under the vendor's rule. `commit`: the digest of its
    commit, which tells copies of a table apart; None if that is cleaned up.
    """

    name: str
    path: str
    table_id: str
    version: int
    content: int
    commit: str | None = None


@dataclass(frozen=True)
class ReuseRules:
    """The limits and options of a result cache.

    `keep`: the life of an answer after its last use, up to `longest` after its first. `most_answer_bytes`: larger
    answers are not kept. `most_bytes`: of all answers together; the least recently used ones are evicted.
    `normalise`: white space and comments do not count. `moved_rows_count`: the vendor's rule, by which a commit that
    only moves rows ends an answer.
    """

    keep: timedelta = timedelta(hours=24)
    longest: timedelta = timedelta(days=31)
    most_answer_bytes: int = 256 << 20
    most_bytes: int = 10 << 30
    normalise: bool = False
    moved_rows_count: bool = False


DEFAULT_RULES = ReuseRules()


@dataclass(frozen=True)
class WrittenAnswer:
    """The files of an answer, in the order of its rows. Columns are named by their places; `schema_json` has their
    names. `time_zone`: that of the session.
    """

    location: str
    files: tuple[str, ...]
    rows: int
    size: int
    schema_json: str
    time_zone: str


@dataclass(frozen=True)
class StoredAnswer:
    """A stored answer. `text`: of its query. `written`: its files. `ended_as`: why it may not be reused any more."""

    uid: str
    key: str
    text: str
    text_digest: str
    tables: tuple[Leaf, ...]
    settings: Mapping[str, str]
    written: WrittenAnswer
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime
    latest_at: datetime
    ended_at: datetime | None = None
    ended_as: Why | None = None
