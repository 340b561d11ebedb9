"""Records, their numbers and flags, load segments and tokens, however the rows of a batch are cut for tasks."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace

import pytest
from pyspark.sql import Row
from pyspark.sql import functions as F

from tests.engine.change_streams.captured import Captured, on_one_table
from tests.engine.lakes import Lake
from tidemark.change_streams.model.change_streams import EPOCH, MICROSECOND, CaptureResult, Position
from tidemark.jobs.workspace import Workspace

pytestmark = pytest.mark.spark

ORDER = ("DELETE", "UPDATE", "INSERT")
MODS, SEGMENT, TASK = 7, 50, 90


def test_a_large_commit_is_cut_into_records_over_all_tokens(lake: Lake, workspace: Workspace) -> None:
    lake.create("k INT, v STRING, w INT")
    lake.sql("INSERT INTO {t} SELECT id, 'a', 0 FROM range(400)")
    captured = on_one_table(lake, workspace, partitions=3, split_rows=100)
    lake.sql(
        "MERGE INTO {t} USING (SELECT CAST(id AS INT) k FROM range(500)) s ON {t}.k = s.k "
        "WHEN MATCHED AND s.k < 100 THEN DELETE WHEN MATCHED AND s.k < 250 THEN UPDATE SET v = 'm' "
        "WHEN MATCHED AND s.k < 350 THEN UPDATE SET w = 1 WHEN MATCHED THEN UPDATE SET v = 'x', w = 2 "
        "WHEN NOT MATCHED THEN INSERT (k, v, w) VALUES (s.k, 'n', 9)",
        "UPDATE {t} SET w = 5 WHERE k IN (200, 300)",
    )

    before = captured.active
    result = captured.capture(lake.version, mods_per_record=MODS, segment_rows=SEGMENT, rows_per_task=TASK)

    rows = captured.rows()
    assert (len(rows), result.rows, result.transactions) == (502, 502, 2)
    require_sound_records(rows)
    require_sound_segments(rows, result)
    tokens = {partition.token: partition for partition in before}
    assert all(tokens[row["partition_token"]].lo <= row["bucket"] < tokens[row["partition_token"]].hi for row in rows)
    assert {row["partition_token"] for row in rows} == set(tokens)
    hashed = lake.spark.createDataFrame([(row["keys"],) for row in rows], "keys string").select(
        F.pmod(F.xxhash64("keys"), F.lit(65_536))
    )
    assert [row["bucket"] for row in rows] == [bucket for (bucket,) in hashed.collect()]

    again = replace(captured, log_path=lake.path.parent / "in_one_task", number=0)
    again.active, again.tables = before, [replace(captured.tables[0], captured=captured.tables[0].captured - 2)]
    again.capture(lake.version, mods_per_record=MODS)
    assert positions(again.rows()) == positions(rows)  # tasks are no part of the answer


def test_partitions_split_after_two_hot_batches_and_children_get_what_comes_later(
    lake: Lake, workspace: Workspace
) -> None:
    lake.create()
    captured = on_one_table(lake, workspace, split_rows=10)
    (root,) = captured.active
    for batch in range(3):
        end = lake.sql(f"INSERT INTO {{t}} SELECT id + {batch * 100}, 'a' FROM range(20)")
        result = captured.capture(end)
        if batch == 1:
            opened = result.opened
            assert [(gone.token, gone.end) for gone in result.closed] == [(root.token, result.published_until)]
    left, right = opened
    assert (left.lo, left.hi, right.hi) == (0, right.lo, 65_536)
    by_batch = defaultdict(set)
    for row in captured.rows():
        by_batch[row["batch"]].add(row["partition_token"])
    assert by_batch == {0: {root.token}, 1: {root.token}, 2: {left.token, right.token}}
    born = {row["token"]: row for row in captured.rows("partition")}
    assert born.keys() == {root.token, left.token, right.token}
    assert (born[left.token]["lo"], born[left.token]["hi"], born[left.token]["parents"]) == (
        0,
        left.hi,
        [root.token],
    )
    assert born[left.token]["batch"] == 1
    until = {row["batch"]: row["commit_timestamp"] for row in captured.rows("window")}
    assert (
        born[left.token]["commit_timestamp"]
        == until[1]
        > max(row["commit_timestamp"] for row in captured.rows() if row["batch"] == 1)
    )


def positions(rows: list[Row]) -> list[tuple[object, ...]]:
    return [(row["commit_timestamp"], row["record_sequence"], row["mod_number"], row["keys"]) for row in rows]


def require_sound_records(rows: list[Row]) -> None:
    transactions: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        transactions[row["server_transaction_id"]].append(row)
    assert len({row["commit_timestamp"] for row in rows}) == len(transactions)
    for mods in transactions.values():
        records: dict[str, list[Row]] = defaultdict(list)
        for row in mods:
            records[row["record_sequence"]].append(row)
        total, tokens = len(records), {row["partition_token"] for row in mods}
        assert sorted(records) == [f"{number:012d}" for number in range(total)]
        assert {row["number_of_records_in_transaction"] for row in mods} == {total}
        assert {row["number_of_partitions_in_transaction"] for row in mods} == {len(tokens)}
        groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
        for number in sorted(records):
            record = records[number]
            (group,) = {(row["partition_token"], row["mod_type"], row["column_types"]) for row in record}
            assert [row["mod_number"] for row in record] == list(range(len(record)))
            places = [(row["bucket"], row["keys"]) for row in record]
            assert places == sorted(places)
            groups[group].append(len(record))
        for sizes in groups.values():
            assert set(sizes[:-1]) <= {MODS}
            assert 0 < sizes[-1] <= MODS
        kinds = [ORDER.index(records[number][0]["mod_type"]) for number in sorted(records)]
        assert kinds == sorted(kinds)
        for token in tokens:
            last = max(row["record_sequence"] for row in mods if row["partition_token"] == token)
            flags = {
                (row["record_sequence"] == last, row["is_last_record_in_transaction_in_partition"])
                for row in mods
                if row["partition_token"] == token
            }
            assert flags <= {(True, True), (False, False)}


def require_sound_segments(rows: list[Row], result: CaptureResult) -> None:
    """Each segment has the rows that it says, and no more than a segment and a record."""

    def place(row: Row) -> tuple[str, Position]:
        time = EPOCH + row["commit_timestamp"] * MICROSECOND
        return row["partition_token"], Position(time, row["record_sequence"])

    assert sum(segment.rows for segment in result.load) == result.rows
    assert len(result.load) >= result.rows // SEGMENT
    for number, segment in enumerate(result.load):
        following = result.load[number + 1 : number + 2]
        end = following[0].start if following and following[0].token == segment.token else None
        inside = [
            row
            for row in rows
            if place(row)[0] == segment.token
            and segment.start <= place(row)[1]
            and (end is None or place(row)[1] < end)
        ]
        assert len(inside) == segment.rows <= SEGMENT + MODS
        assert (segment.token, segment.start) in {place(row) for row in inside if row["mod_number"] == 0}
    assert result.records == len({(row["server_transaction_id"], row["record_sequence"]) for row in rows})
    assert json.dumps([segment.token for segment in result.load]) == json.dumps(sorted(s.token for s in result.load))


def test_rows_of_a_whole_capture_are_not_captured_again(lake: Lake, workspace: Workspace) -> None:
    lake.create()
    captured: Captured = on_one_table(lake, workspace)
    captured.capture(lake.sql("INSERT INTO {t} VALUES (1, 'a')"))
    captured.capture(lake.sql("UPDATE {t} SET v = 'b'"))
    assert [(row["batch"], row["mod_type"]) for row in captured.rows()] == [(0, "INSERT"), (1, "UPDATE")]
    assert len(captured.rows("partition")) == 1
