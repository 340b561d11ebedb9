"""The place of a statement in a table's log: Delta has no query ids, but commits carry a substitute."""

from __future__ import annotations

from tidemark.lake.delta_log import DeltaLog

__all__ = ["versions_of_statement"]


def versions_of_statement(log: DeltaLog, statement: str) -> tuple[int, int] | None:
    """The first and the last version of the statement; None where no commit that is kept names it.

    A commit names it as `userMetadata`, which `spark.databricks.delta.commitInfo.userMetadata` sets and DESCRIBE
    HISTORY shows, or as `txnId`, which Delta gives each commit.
    """
    found = [
        commit.version
        for commit in log.commits(log.earliest() - 1, log.head())
        if statement in (commit.user_metadata, commit.txn_id)
    ]
    return (found[0], found[-1]) if found else None
