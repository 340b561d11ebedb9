"""Files of jobs in YARN that cannot be removed from the lake: the job has ended all the same."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tidemark.hooks._cluster_files import ClusterFiles
from tidemark.hooks.settings import TidemarkSettings

NOBODY_THERE = {
    "key": "k",
    "secret": "s",
    "endpoint_url": "http://127.0.0.1:9",
    "config_kwargs": {"retries": {"max_attempts": 1}, "connect_timeout": 1, "read_timeout": 1},
}


def test_a_storage_that_does_not_answer_after_the_job_fails_no_task(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = TidemarkSettings("", "s3://lake", tmp_path, tmp_path, storage_options=NOBODY_THERE)
    files = ClusterFiles(settings)
    with caplog.at_level(logging.WARNING, logger="tidemark"):
        files.remove("one")
        files.forget("owner", "one")
    said = [record.getMessage() for record in caplog.records]
    assert [one.partition(" could not be removed")[0] for one in said] == [
        "s3://lake/_tidemark/cluster_jobs/one",
        "Files of dead jobs in s3://lake/_tidemark/cluster_jobs",
        "s3://lake/_tidemark/cluster_tasks/owner/one",
    ]
