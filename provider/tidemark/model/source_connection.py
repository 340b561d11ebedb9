"""The connection of a source of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["SourceConnection"]


@dataclass(frozen=True)
class SourceConnection:
    """An Airflow connection, for a source that a channel reads. Only the environment carries it; nothing prints its
    secrets.

    `extra`: the extras; for Kafka the settings of librdkafka with `bootstrap.servers`. `sqlalchemy_url`: of a database.
    """

    conn_id: str
    conn_type: str
    host: str | None = None
    port: int | None = None
    login: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    schema: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)
    sqlalchemy_url: str | None = field(default=None, repr=False)
