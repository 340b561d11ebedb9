"""What is wrong with the table that a statement writes."""

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
    "TargetNotDelta",
    "TargetNotFound",
    "TargetRewound",
]


class TargetError(TidemarkError):
    """{message}"""


class TargetNotFound(TargetError):
    """The target {target} does not exist. Create it as a Delta table first, or mend its name. {hint}"""

    def __init__(self, *, hint: str = "", **facts: Any) -> None:
        super().__init__(hint=hint, **facts)


class TargetNotDelta(TargetError):
    """The target {target} is not a Delta table ({problem}); only Delta remembers which transactions it has had."""


class TargetDoesNotFit(TargetError):
    """The stream does not fit the target {target}: {problem}."""


class ConstraintViolated(TargetError):
    """A row of the window breaks a constraint of the target: {problem}. Nothing of the statement was written. An append
    or a merge with quarantine='schema.table' puts such rows there and delivers all others.
    """


class QuarantineDoesNotFit(TargetError):
    """The table {quarantine} cannot be the quarantine of {target}: {problem}. Nothing was written. Name another table,
    or one that does not exist yet: it is created.
    """


class SplitUnreadable(TargetError):
    """The rows of a window were sorted by what {table} held at version {version}, and files of that version are gone
    ({count}, the first {first}): VACUUM has removed them. Without them the rest of the window cannot be written, and
    nothing was. Bring them back from a backup and run the task again. Or write {table} anew (CREATE OR REPLACE TABLE,
    with its constraints; a quarantine without the rows of this run), then `airflow tidemark streams redo`, and run the
    task again: the window is sorted by the new table.
    """


class TargetForgetsTransactions(TargetError):
    """The target {target} forgets its transactions after {retention} (delta.setTransactionRetentionDuration), sooner
    than the {needed} that a window may stay pinned, so a late writer could write twice. Raise the property or unset
    it.
    """


class MissingMergeKey(TargetError):
    """A merge into {target} needs key columns that both sides have: {problem}."""


class AmbiguousMergeKey(TargetError):
    """The merge key ({keys}) is not unique in the changes for {target}: {duplicates} keys stand for more than one row,
    for example {example}. Nothing was written. Choose keys that identify a row.
    """


class TargetChanged(TargetError):
    """The target {target} was recreated while its window was pinned: it had the id {expected}, now {found}. Whether it
    has the changes cannot be known from its log; `airflow tidemark streams redo` lets the next run write the window
    into the new table.
    """


class TargetRewound(TargetError):
    """The target {target} was rewound (RESTORE or replaced) below the write of transaction {app_id} version
    {txn_version}: the changes are gone from it. `airflow tidemark streams redo` lets the next run
    write the window again.
    """


class SerialReused(TargetError):
    """The log of {target} holds transaction {app_id} at version {found}, but not with the mark of version {txn_version}
    of this window: another control store gave out the number, or this one was restored from a backup. Nothing of this
    window was written there; recreate the stream to get a new identity.
    """
