"""Errors of the table that a statement writes."""

from __future__ import annotations

from typing import Any

from tidemark.errors.tree import TidemarkError

__all__ = [
    "AmbiguousMergeKey",
    "ConstraintViolated",
    "MissingMergeKey",
    "QuarantineDoesNotFit",
    "SerialReused",
    "SplitUnreadable",
    "TargetChanged",
    "TargetDoesNotFit",
    "TargetError",
    "TargetForgetsTransactions",
    "TargetIsKept",
    "TargetNotDelta",
    "TargetNotFound",
    "TargetRewound",
]


class TargetError(TidemarkError):
    """{message}"""


class TargetNotFound(TargetError):
    """The target {target} does not exist. Create it as a Delta table first, or correct its name. {hint}"""

    def __init__(self, *, hint: str = "", **facts: Any) -> None:
        super().__init__(hint=hint, **facts)


class TargetNotDelta(TargetError):
    """The target {target} is not a Delta table ({problem}); only a Delta log records its transactions. Name a Delta
    table.
    """


class TargetIsKept(TargetError):
    """The target {target} has the rows of {keeper}, a {kind}, which only its refreshes write. Nothing was written. Name
    another table. If {keeper} is dropped, its table stays and can be written.
    """


class TargetDoesNotFit(TargetError):
    """The stream does not fit the target {target}: {problem}. Nothing was written. Select columns that match, alter the
    target, or let it grow with schema_evolution="add".
    """


class ConstraintViolated(TargetError):
    """A row of the window breaks a constraint of the target: {problem}. Nothing of the statement was written. Correct
    the row or the constraint. To set such rows aside and deliver all others, append or merge with
    quarantine='schema.table'.
    """


class QuarantineDoesNotFit(TargetError):
    """The table {quarantine} cannot be the quarantine of {target}: {problem}. Nothing was written. Name another
    table. A table that does not exist yet is created.
    """


class SplitUnreadable(TargetError):
    """VACUUM has removed files of version {version} of {table}, by which the rows of a window were sorted ({count}, the
    first {first}). The rest of the window cannot be written without them, and nothing was written. Restore them from a
    backup and run the task again. Or recreate {table} (CREATE OR REPLACE TABLE, with its constraints; a quarantine
    without the rows of this run). {remedy} The window is sorted by the new table.
    """

    def __init__(
        self, *, remedy: str = "Then run `airflow tidemark streams redo` and the task again.", **facts: Any
    ) -> None:
        super().__init__(remedy=remedy, **facts)


class TargetForgetsTransactions(TargetError):
    """The target {target} forgets its transactions after {retention} (delta.setTransactionRetentionDuration), sooner
    than the {needed} for which a window may stay pinned. A late writer could write twice. Raise the property or unset
    it.
    """


class MissingMergeKey(TargetError):
    """A merge into {target} needs key columns that both sides have: {problem}. Nothing was written. Choose keys that
    both have and that identify a row.
    """


class AmbiguousMergeKey(TargetError):
    """The merge key ({keys}) is not unique in the changes for {target}: {duplicates} keys have more than one row, for
    example {example}. Nothing was written. Choose keys that identify a row.
    """


class TargetChanged(TargetError):
    """The target {target} was recreated while its window was pinned: it had the id {expected}, now {found}. Its log
    does not show whether it has the changes. {remedy}
    """

    def __init__(
        self,
        *,
        remedy: str = "Run `airflow tidemark streams redo` to let the next run write the window into the new table.",
        **facts: Any,
    ) -> None:
        super().__init__(remedy=remedy, **facts)


class TargetRewound(TargetError):
    """The target {target} was rewound (RESTORE or replaced) below the write of transaction {app_id} version
    {txn_version}: the changes are gone from it. {remedy}
    """

    def __init__(
        self,
        *,
        remedy: str = "Run `airflow tidemark streams redo` to let the next run write the window again.",
        **facts: Any,
    ) -> None:
        super().__init__(remedy=remedy, **facts)


class SerialReused(TargetError):
    """The log of {target} holds transaction {app_id} at version {found}, but lacks this window's mark of version
    {txn_version}. Another control store gave out the number, or this one was restored from a backup. Nothing of this
    window was written there. {remedy}
    """

    def __init__(self, *, remedy: str = "Recreate the stream to get a new identity.", **facts: Any) -> None:
        super().__init__(remedy=remedy, **facts)
