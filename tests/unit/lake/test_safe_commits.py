"""A table on S3 needs a log store that coordinates commits, or one writer."""

from __future__ import annotations

import pytest

from tidemark.channels.planning.storages import log_store_setting, log_store_settings
from tidemark.errors import CommitsMayBeLost
from tidemark.lake.safe_commits import require_safe_commits

COORDINATING = "io.delta.storage.S3DynamoDBLogStore"


def test_a_log_store_of_the_session_makes_commits_on_s3_safe() -> None:
    settings = log_store_settings({"spark.delta.logStore.s3.impl": COORDINATING})
    require_safe_commits("a.b", "s3://lake/a/b", settings.get(log_store_setting("s3")), only_writer=False)
    alone = "io.delta.storage.S3SingleDriverLogStore"
    for scheme, log_store in (("s3a", settings.get(log_store_setting("s3a"))), ("s3", alone), ("s3n", None)):
        with pytest.raises(CommitsMayBeLost, match=rf"spark\.delta\.logStore\.{scheme}\.impl"):
            require_safe_commits("a.b", f"{scheme}://lake/a/b", log_store, only_writer=False)
        require_safe_commits("a.b", f"{scheme}://lake/a/b", log_store, only_writer=True)
    require_safe_commits("a.b", "gs://lake/a/b", None, only_writer=False)
