"""Files of stored answers: what others left in them, and the values that JSON has not."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.errors import AnswerDamaged
from tidemark.results.model.answers import WrittenAnswer
from tidemark.results.worker.files import AnswerLost, OpenAnswer
from tidemark.results.worker.queries import QueryAnswer, plain_rows

_SCHEMA = json.dumps({"fields": [{"name": "x"}, {"name": "y"}]})


def written(directory: Path, columns: dict[str, Any], *, zone: str = "UTC", schema: str = _SCHEMA) -> WrittenAnswer:
    table = pa.table(columns)
    pq.write_table(table, directory / "answer.parquet")
    return WrittenAnswer(directory.as_uri(), ("answer.parquet",), table.num_rows, 1, schema, zone)


def answer(of: WrittenAnswer) -> QueryAnswer:
    return QueryAnswer("cache", "", "key", (), ("x", "y"), of.rows, of)


def test_a_file_of_other_columns_is_no_answer(tmp_path: Path) -> None:
    with pytest.raises(AnswerLost, match="other columns"):
        OpenAnswer(written(tmp_path, {"c0": [1, 2]}), {})


def test_garbled_pages_are_an_error_that_says_which_answer_to_remove(tmp_path: Path) -> None:
    stored = written(tmp_path, {"c0": list(range(50_000)), "c1": [f"text {n}" for n in range(50_000)]})
    file = tmp_path / "answer.parquet"
    content = bytearray(file.read_bytes())
    content[1000:40_000] = b"\7" * 39_000
    file.write_bytes(bytes(content))
    opened = OpenAnswer(stored, {})
    for read in (opened.table, lambda: list(opened.batches()), lambda: plain_rows(answer(stored), {}, most=100_000)):
        with pytest.raises(AnswerDamaged, match=r"results clear"):
            read()


def test_an_answer_whose_files_are_gone_is_an_error_of_the_task(tmp_path: Path) -> None:
    stored = written(tmp_path, {"c0": [1], "c1": [2]})
    (tmp_path / "answer.parquet").unlink()
    with pytest.raises(AnswerDamaged):
        plain_rows(answer(stored), {}, most=10)


def test_numbers_that_json_has_not_are_texts(tmp_path: Path) -> None:
    stored = written(tmp_path, {"c0": [math.nan, math.inf, -math.inf, 1.5], "c1": [[math.nan], None, [], [2.0]]})
    rows = plain_rows(answer(stored), {}, most=10)
    assert rows == [["NaN", ["NaN"]], ["Infinity", None], ["-Infinity", []], [1.5, [2.0]]]
    json.dumps(rows, allow_nan=False)


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("Europe/Berlin", "2020-01-01T01:00:00+01:00"),
        ("+02:00", "2020-01-01T02:00:00+02:00"),
        ("GMT+2", "2020-01-01T02:00:00+02:00"),
        ("UTC-0330", "2019-12-31T20:30:00-03:30"),
        ("Z", "2020-01-01T00:00:00+00:00"),
        ("PST", "2020-01-01T00:00:00+00:00"),
    ],
)
def test_times_are_shown_in_each_zone_that_spark_takes(zone: str, shown: str, tmp_path: Path) -> None:
    schema = json.dumps({"fields": [{"name": "x"}]})
    stored = written(tmp_path, {"c0": [datetime(2020, 1, 1, tzinfo=UTC)]}, zone=zone, schema=schema)
    assert plain_rows(answer(stored), {}, most=10) == [[shown]]
