"""Errors of the control store."""

from __future__ import annotations

from tidemark.errors.tree import TidemarkError

__all__ = [
    "StoreBusy",
    "StoreError",
    "StoreNotMigrated",
    "StoreOlderThanLake",
    "StoreRefused",
    "StoreTooNew",
    "StoreUnreachable",
    "StoreUrlInvalid",
]


class StoreError(TidemarkError):
    """{message}"""


class StoreUrlInvalid(StoreError):
    """The URL of the control store, {url}, cannot be used: {problem}."""


class StoreUnreachable(StoreError):
    """The control store {url} cannot be reached: {problem}. Check that its server runs and answers this host, or
    that its file can be opened. A retry of the task continues.
    """


class StoreRefused(StoreError):
    """The control store {url} answered, but refused: {problem}. Check user, password, database and the rights on its
    tables.
    """


class StoreBusy(StoreError):
    """Other writers kept the control store {url} busy for too long: {problem}. Nothing was stored. Try again."""


class StoreNotMigrated(StoreError):
    """The control store {url} is at revision {found}, but this release needs {needed}. Run
    `airflow tidemark db migrate`.
    """


class StoreTooNew(StoreError):
    """The control store {url} is at revision {found}, which this release, made for {needed}, does not know. A newer
    release has migrated it. Install that release of airflow-provider-tidemark here, too.
    """


class StoreOlderThanLake(StoreError):
    """The control store {url} is older than the lake: {target} has transactions that this store does not know, of these
    streams: {streams}. The store was restored from an older backup, or the streams were imported from an older export.
    Nothing was written, and no window was pinned. Restore a newer backup, or recover each of these streams with
    `airflow tidemark streams recover`; see "Restore the control store" in the documentation.
    """
