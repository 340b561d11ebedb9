"""Events of a binary log that a transaction must not have, with the problem and the remedy of each."""

from __future__ import annotations

from collections.abc import Mapping

from tidemark.replication.sources.mysql.binlog import Kind

__all__ = ["REFUSED"]

REFUSED: Mapping[int, tuple[str, str | None]] = {
    Kind.INCIDENT: ("the server lost events before it (INCIDENT)", None),
    Kind.PARTIAL_UPDATE: (
        "it has parts of JSON documents only (binlog_row_value_options)",
        "Run SET GLOBAL binlog_row_value_options = '', also for open sessions, then recover the replication from a"
        " position behind it.",
    ),
    Kind.COMPRESSED_TRANSACTION: (
        "it is compressed",
        "Run SET GLOBAL binlog_transaction_compression = OFF, also for open sessions, then recover the replication"
        " from a position behind it, and backfill its tables.",
    ),
}
"""By the kind of the event. Without a remedy of its own, it is a recovery behind the transaction and a backfill."""
