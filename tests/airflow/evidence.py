"""Stands in for a driver: says of every statement in the spec that it is written, without having written."""

from __future__ import annotations

import sys
from pathlib import Path

from tidemark.jobs.files import read_spec, write_result
from tidemark.model.codec import to_plain
from tidemark.model.jobs import JobResult
from tidemark.model.statements import Evidence
from tidemark.streams.model.transaction_jobs import WRITE, WriteReport

__all__ = ["FOR_EVERY_STATEMENT"]

FOR_EVERY_STATEMENT = f'{sys.executable} {Path(__file__)} "$spec"'  # for the fixture `spark_submit`

if __name__ == "__main__":
    spec = read_spec(sys.argv[1])
    evidence = tuple(
        Evidence(
            number=statement.number,
            table_id=statement.target.table_id,
            commit_version=statement.base_version + 1,
            txn_version=statement.txn_version,
            digest=statement.digest,
            rows={"inserted": 3, "deleted": 1},
        )
        for statement in WRITE.requested(spec).statements
    )
    write_result(spec.result_uri, JobResult(to_plain(WriteReport(evidence))))
