"""What is wrong with the control store."""

from __future__ import annotations

from tidemark.errors.tree import TidemarkError

__all__ = [
    "StoreBusy",
    "StoreError",
    "StoreNotMigrated",
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
    """The control store {url} cannot be reached: {problem}"""


class StoreRefused(StoreError):
    """The control store {url} is there, but refused: {problem}. Check user, password, database and the rights on its
    tables.
    """


class StoreBusy(StoreError):
    """Others kept the control store {url} busy for too long: {problem}. Nothing was stored; trying again helps."""


class StoreNotMigrated(StoreError):
    """The control store {url} is at revision {found}, this release needs {needed}. Run
    `airflow tidemark db migrate`.
    """


class StoreTooNew(StoreError):
    """The control store {url} is at revision {found}, which this release, made for {needed}, does not know: a newer one
    has migrated it. Install that release of airflow-provider-tidemark here, too.
    """
