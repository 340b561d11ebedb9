"""Storages on which two drivers can overwrite each other's commits."""

from __future__ import annotations

from tidemark.errors import CommitsMayBeLost

__all__ = ["require_safe_commits"]

_WITHOUT_CONDITIONAL_WRITES = frozenset({"s3", "s3a", "s3n"})
_OF_ONE_DRIVER = "S3SingleDriverLogStore"


def require_safe_commits(table: str, uri: str, log_store: str | None, *, only_writer: bool) -> None:
    """Raises CommitsMayBeLost for a table on S3, unless a log store coordinates commits, or nobody else writes it.

    `log_store`: the class that the configuration names for the scheme; None for Delta's default.
    """
    scheme = uri.partition("://")[0]
    coordinates = log_store is not None and not log_store.endswith(_OF_ONE_DRIVER)
    if scheme in _WITHOUT_CONDITIONAL_WRITES and not coordinates and not only_writer:
        raise CommitsMayBeLost(table=table, scheme=scheme)
