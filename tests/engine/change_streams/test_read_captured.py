"""What was really captured is read by every reader: records of 1.1, children, transactions."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from functools import reduce
from typing import Any

import pytest
from pyspark.sql import DataFrame

from tests.engine.change_streams.captured import CREATED, on_one_table
from tests.engine.lakes import Lake
from tidemark.change_streams.driver.read import read_change_stream, read_records
from tidemark.change_streams.driver.reassembly import assemble_transactions
from tidemark.change_streams.model.change_streams import MICROSECOND, ChangeStreamOptions, Position
from tidemark.jobs.workspace import Workspace

pytestmark = pytest.mark.spark


def test_a_captured_history_is_read_partition_by_partition_until_its_end(lake: Lake, workspace: Workspace) -> None:
    """Beginning at the question for partitions, following children, as a reader of Spanner does."""
    lake.create("k INT, v STRING")
    kept = ChangeStreamOptions(retention=timedelta(days=30_000))
    captured = on_one_table(lake, workspace, options=kept, partitions=2, split_rows=2)
    for key in (1, 10, 20, 30):
        rows = ", ".join(f"({key + number}, 'a')" for number in range(8))
        captured.capture(lake.sql(f"INSERT INTO {{t}} VALUES {rows}", f"UPDATE {{t}} SET v = 'b' WHERE k = {key}"))
    stream = captured.stream

    def request(token: str | None, start: datetime) -> list[dict[str, Any]]:
        frame = read_change_stream(
            lake.spark,
            stream,
            now=stream.published_until,
            start_timestamp=start,
            partition_token=token,
            heartbeat_milliseconds=300_000,
            as_json=True,
        )
        return [json.loads(row[0]) for row in frame.collect()]

    waiting = [
        (row["child_partitions_record"]["child_partitions"][0]["token"], CREATED) for row in request(None, CREATED)
    ]
    done: set[str] = set()
    data = []
    while waiting:
        token, start = waiting.pop()
        done.add(token)
        for row in request(token, start):
            ((kind, record),) = row.items()
            if kind == "data_change_record":
                data.append(record)
            elif kind == "child_partitions_record":
                begin = datetime.fromisoformat(record["start_timestamp"])
                waiting += [
                    (child["token"], begin)
                    for child in record["child_partitions"]
                    if set(child["parent_partition_tokens"]) <= done and child["token"] not in done
                ]
    mods = sorted((r["record_sequence"], r["commit_timestamp"], json.dumps(mod)) for r in data for mod in r["mods"])
    assert len(mods) == len(set(mods)) == len(captured.rows()) == 36
    assert len(done) > 2, "it has split"
    bounds = Position(CREATED), Position(stream.published_until)
    frames = [read_records(lake.spark, stream.log_path, token, *bounds) for token in sorted(done)]
    records = reduce(DataFrame.unionByName, frames)
    whole = assemble_transactions(records, stream.published_until + MICROSECOND, stream="s").collect()
    assert [sum(len(record["mods"]) for record in row["records"]) for row in whole] == [8, 1] * 4
