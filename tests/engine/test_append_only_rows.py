"""What an append-only stream shows: R60 to R63, and the other ways in which a row can seem to be new."""

from __future__ import annotations

import pytest

from tests.engine.lakes import Lake
from tests.tiers import some
from tidemark.changes.planning.sets.plan import Origin
from tidemark.model.streams import StreamMode

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("vectors", some(["true", "false"], now=["true"]))
def test_rows_show_as_they_were_inserted(lake: Lake, vectors: str) -> None:
    """R60, R61: whatever was done to them since, and nothing else shows."""
    start = lake.create(delta__enableDeletionVectors=vectors).sql("INSERT INTO {t} VALUES (1, 'old'), (2, 'old')")
    lake.sql(
        "INSERT INTO {t} VALUES (3, 'blue'), (4, 'blue'), (5, 'blue')",
        "UPDATE {t} SET v = 'purple' WHERE k IN (1, 3)",
        "DELETE FROM {t} WHERE k IN (2, 4)",
        "MERGE INTO {t} t USING (SELECT * FROM VALUES (5, 'm'), (6, 'm') AS s(k, v)) s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *",
        "DELETE FROM {t} WHERE k = 6",
    )
    assert lake.appended(start) == [
        ("INSERT", False, 3, "blue"),
        ("INSERT", False, 4, "blue"),
        ("INSERT", False, 5, "blue"),
        ("INSERT", False, 6, "m"),
    ]


def test_compaction_never_delivers_again(lake: Lake) -> None:
    """R62: neither rows of before the window nor those of it, with later deletes on the compacted file."""
    start = lake.create().sql("INSERT INTO {t} VALUES (1, 'a')", "INSERT INTO {t} VALUES (2, 'a')")
    lake.sql(
        "INSERT INTO {t} VALUES (3, 'b')",
        "OPTIMIZE {t}",
        "INSERT INTO {t} VALUES (4, 'c')",
        "DELETE FROM {t} WHERE k = 3",
        "OPTIMIZE {t}",
    )
    assert lake.appended(start) == [("INSERT", False, 3, "b"), ("INSERT", False, 4, "c")]


def test_overwritten_rows_are_inserts_and_truncated_ones_cost_nothing(lake: Lake) -> None:
    """R62, R63: the side of removed rows is never read."""
    start = lake.create().sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'a')")
    end = lake.sql("DELETE FROM {t}")
    assert lake.plan(start, end, StreamMode.APPEND_ONLY).empty
    lake.sql("INSERT INTO {t} VALUES (3, 'b')", "INSERT OVERWRITE {t} VALUES (1, 'a')")
    plan = lake.plan(start, mode=StreamMode.APPEND_ONLY)
    assert (plan.rows(Origin.REMOVED), plan.rows(Origin.BORN)) == (0, 2)
    assert lake.appended(start) == [("INSERT", False, 1, "a"), ("INSERT", False, 3, "b")]


def test_restored_rows_are_not_inserted_again(lake: Lake) -> None:
    """Files that come back, of before the window and of it, hold rows that were born earlier or are shown already."""
    first = lake.create().sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'a')")
    start = lake.sql("DELETE FROM {t} WHERE k = 1")
    grown = lake.sql("INSERT INTO {t} VALUES (3, 'b')")
    lake.sql(
        f"RESTORE TABLE {{t}} TO VERSION AS OF {first}",
        f"RESTORE TABLE {{t}} TO VERSION AS OF {grown}",
        "INSERT INTO {t} VALUES (4, 'c')",
    )
    assert lake.appended(start) == [("INSERT", False, 3, "b"), ("INSERT", False, 4, "c")]
