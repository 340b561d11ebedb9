"""A writer's facts about a transaction for the change streams that watch its table, as a commit's userMetadata."""

from __future__ import annotations

import json

__all__ = ["transaction_metadata"]


def transaction_metadata(*, tag: str = "", exclude: bool = False, system: bool = False, ttl: bool = False) -> str:
    """The `userMetadata` of a commit that change streams read.

    `tag` becomes transaction_tag. `exclude`: streams with allow_txn_exclusion skip the commit. `system`:
    is_system_transaction. `ttl`: the commit's DELETEs are those of a time to live; streams with exclude_ttl_deletes
    skip them. Pass it to Delta as

        rows.write.format("delta").option("userMetadata", transaction_metadata(tag="nightly")).mode("append").save(path)

    or, for SQL, as the setting `spark.databricks.delta.commitInfo.userMetadata`; unset that afterwards.
    """
    said = {
        "transaction_tag": tag,
        "exclude_txn_from_change_streams": exclude,
        "is_system_transaction": system,
        "ttl": ttl,
    }
    return json.dumps({"tidemark": {name: value for name, value in said.items() if value}}, sort_keys=True)
