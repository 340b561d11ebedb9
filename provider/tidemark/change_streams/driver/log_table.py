"""The log of a change stream: one Delta table, append-only, one row for each modification, partitioned by token.

Rows of type `data` are stored under the token of their partition. READ must also know the partitions and the batches;
they are rows of the types `partition` and `window` under META_TOKEN. A batch is one commit, with the stream's uid as
Delta application and the batch's number as its version. So the log has it once or not at all.

Rows of the type `expired` under EXPIRED_TOKEN say what retention removes; they are written before the removal. Earlier
releases wrote `trimmed` under `_trimmed`, which counts as well.
"""

from __future__ import annotations

__all__ = ["EXPIRED_TOKEN", "EXPIRED_TOKENS", "EXPIRED_TYPES", "LOG_COLUMNS", "LOG_DDL", "META_TOKEN", "TOKEN_COLUMN"]

TOKEN_COLUMN = "partition_token"
META_TOKEN = "_"
EXPIRED_TOKEN = "_expired"
EXPIRED_TOKENS = (EXPIRED_TOKEN, "_trimmed")
EXPIRED_TYPES = ("expired", "trimmed")

LOG_COLUMNS = {
    TOKEN_COLUMN: "string",
    "record_type": "string",  # data, partition, window, expired
    "batch": "bigint",
    # data: the transaction's; partition: its start; window: up to where everything is published, exclusive;
    # expired: data before it may be gone
    "commit_timestamp": "timestamp",
    "record_sequence": "string",  # data: fixed width, increasing in a transaction across partitions
    # only data, one row a modification
    "mod_number": "int",  # its place in the record, from 0
    "raw_commit_timestamp": "timestamp",  # as the table's log has it
    "server_transaction_id": "string",  # `<table id>:<version>`
    "table_name": "string",
    "source_version": "bigint",
    "mod_type": "string",  # DELETE, UPDATE, INSERT
    "value_capture_type": "string",
    "column_types": "string",  # JSON: [{name, type, is_primary_key, ordinal_position}]
    "keys": "string",  # JSON object, names in alphabetical order
    "new_values": "string",  # JSON object, {} where the capture type has none
    "old_values": "string",
    "bucket": "int",  # of the key, 0 to 65535
    "is_last_record_in_transaction_in_partition": "boolean",
    "number_of_records_in_transaction": "bigint",
    "number_of_partitions_in_transaction": "bigint",
    "transaction_tag": "string",  # "" where there is none
    "is_system_transaction": "boolean",
    # only partition
    "token": "string",
    "lo": "int",
    "hi": "int",
    "parents": "array<string>",
    # only window
    "result": "string",  # the batch's CaptureResult as JSON: what a second attempt answers
}

LOG_DDL = ", ".join(f"{name} {kind}" for name, kind in LOG_COLUMNS.items())
