"""Stats of other writers that count too few rows: nothing that they leave out comes into a change set."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from pyroaring import BitMap64

from tests.unit.lake.delta_directories import born
from tidemark.changes.driver.planned_files import _Files
from tidemark.changes.planning.sets.forms import Form, PathChange
from tidemark.changes.planning.sets.plan import PlannedFile
from tidemark.errors import CorruptLog
from tidemark.lake import deletion_vectors
from tidemark.lake.delta_log import DeltaLog

ROWS = 200
DELETED = range(40)


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    made = born(tmp_path / "t")
    pyarrow.parquet.write_table(pyarrow.table({"a": range(ROWS)}), tmp_path / "t" / "f.parquet")
    return made


def form(log: DeltaLog, said: int, *deleted: int) -> Form:
    """The file as a writer describes it that says it has `said` rows."""
    vector = deletion_vectors.inline(BitMap64([*DELETED, *deleted]))
    stats = json.dumps({"numRecords": said})
    return Form("f.parquet", 1000, {}, stats, vector, 0, 0, log.state().metadata)


def planned(log: DeltaLog, *forms: tuple[Form, int]) -> list[PlannedFile]:
    files = _Files(log, log.state().metadata, 0, 1, 1, True)
    return list(files.of_path(PathChange("f.parquet", forms)))


def shown(log: DeltaLog, file: PlannedFile) -> list[int]:
    assert file.deletion_vector is not None
    return sorted(BitMap64(range(ROWS)) - deletion_vectors.load(file.deletion_vector, log.uri, log.storage))


@pytest.mark.parametrize("said", [ROWS, ROWS - len(DELETED), 150])
def test_only_the_row_that_was_deleted_is_in_the_change_set(log: DeltaLog, said: int) -> None:
    (file,) = planned(log, (form(log, said), -1), (form(log, said, 170), 1))
    assert (file.rows, shown(log, file)) == (1, [170])
    assert json.loads(file.stats or '{"numRecords": 200}')["numRecords"] == ROWS


def test_a_file_with_more_rows_deleted_than_the_stats_count_has_no_negative_count(log: DeltaLog) -> None:
    one = form(log, 10)
    assert (one.rows, one.likely_rows >= 0) == (None, True)
    (file,) = planned(log, (one, -1))
    assert (file.rows, file.stats) == (ROWS - len(DELETED), None)


def test_a_vector_of_rows_that_the_file_does_not_have_is_said_with_the_file(log: DeltaLog) -> None:
    with pytest.raises(CorruptLog, match=r"f\.parquet.* has 200 rows, but a deletion vector needs 901"):
        planned(log, (form(log, ROWS), -1), (form(log, ROWS, 900), 1))
