"""The cost follows the changed rows: partners alone are read of the other tables."""

from __future__ import annotations

import re

import pytest

from tests.engine.views.view_lake import ViewLake
from tidemark.changes.planning.views.plan import Way
from tidemark.model.streams import StreamMode

pytestmark = pytest.mark.spark


@pytest.fixture
def wide(views: ViewLake) -> ViewLake:
    """Facts, and a table of partners in ten files, each with keys of its own."""
    views.table("facts", "id BIGINT, k INT, v STRING")
    views.table("partners", "k INT, name STRING")
    views.sql("INSERT INTO {db}.partners SELECT INT(id), string(id) FROM range(0, 1000, 1, 10)")
    views.sql("INSERT INTO {db}.facts SELECT id, INT(id), 'old' FROM range(0, 1000, 1, 1)")
    views.mark()
    return views


def plan_of(views: ViewLake, text: str, *, beyond: bool = False) -> str:
    """Spark's plan of the changes."""
    query = views.view("v", text, beyond=beyond)
    frame = views.frame(query)
    frame.createOrReplaceTempView("view_changes")
    return str(views.spark.sql("EXPLAIN EXTENDED SELECT * FROM view_changes").collect()[0][0])


def files_read(views: ViewLake, text: str, *, beyond: bool = False) -> set[str]:
    """The data files that the query for the changes names, by their table."""
    query = views.view("v", text, beyond=beyond)
    return {file for file in views.frame(query).inputFiles() if "/tables/" in file}


def test_files_without_partners_are_not_read(wide: ViewLake) -> None:
    wide.sql("UPDATE {db}.facts SET v = 'new' WHERE id IN (105, 150, 990)")
    text = "SELECT f.id, f.v, p.name FROM {db}.facts f JOIN {db}.partners p ON f.k = p.k"
    partners = {file for file in files_read(wide, text) if "/partners/" in file}
    assert len(partners) == 2
    assert not [file for file in files_read(wide, text) if "/facts/" in file], "changed rows are known by now"
    assert len(wide.changes(wide.resolved("v"))) == 6


def test_changed_rows_are_broadcast_to_their_partners(wide: ViewLake) -> None:
    wide.sql("UPDATE {db}.facts SET v = 'new' WHERE id IN (105, 150, 990)")
    wide.spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        plan = plan_of(wide, "SELECT f.id, f.v, p.name FROM {db}.facts f JOIN {db}.partners p ON f.k = p.k")
    finally:
        wide.spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    assert "BroadcastHashJoin" in plan
    assert "SortMergeJoin" not in plan


def test_a_table_without_changes_is_read_once_and_gives_no_term(wide: ViewLake) -> None:
    wide.sql("DELETE FROM {db}.facts WHERE id = 1")
    query = wide.view(
        "v", "SELECT f.id FROM {db}.facts f JOIN {db}.partners p ON f.k = p.k JOIN {db}.partners q ON q.k = p.k"
    )
    plan = wide.plan(query)
    assert (plan.way, plan.terms) == (Way.TERMS, 1)
    facts, partners = plan.bases
    assert (facts.changed_rows, facts.versions) == (1, ())
    assert (partners.changed_rows, partners.versions) == (0, (partners.end,))
    assert partners.bytes is not None
    assert partners.rows == 1000
    assert "terms, the query is made of projections" in plan.in_words()
    assert plan.explain()["bases"][0]["changed_rows"] == 1


def test_groups_of_other_keys_are_not_read(wide: ViewLake) -> None:
    wide.sql("UPDATE {db}.partners SET name = 'new' WHERE k IN (205, 250)")
    text = "SELECT k, count(*) AS n, max(name) AS name FROM {db}.partners GROUP BY k"
    files = files_read(wide, text, beyond=True)
    assert 1 <= len(files) <= 3, "the file of these keys at both ends"
    query = wide.resolved("v", beyond=True)
    assert wide.plan(query).way is Way.GROUPS
    assert wide.changes(query) == [
        ("DELETE", True, 205, 1, "205"),
        ("DELETE", True, 250, 1, "250"),
        ("INSERT", True, 205, 1, "new"),
        ("INSERT", True, 250, 1, "new"),
    ]


def test_more_changed_rows_than_fit_the_driver_are_read_by_spark_alone(
    wide: ViewLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemark.changes.driver.views.changed.MOST_ROWS_IN_THE_DRIVER", 2)
    wide.sql("UPDATE {db}.facts SET v = 'new' WHERE id IN (105, 150, 990)")
    query = wide.view("v", "SELECT f.id, f.v, p.name FROM {db}.facts f JOIN {db}.partners p ON f.k = p.k")
    assert [row[2] for row in wide.changes(query)] == [105, 150, 990] * 2
    assert wide.changes(query, StreamMode.APPEND_ONLY) == []


def test_a_plan_needs_no_spark() -> None:
    import subprocess
    import sys

    code = "import sys; sys.modules['pyspark'] = None; import tidemark.changes.planning.views.plan"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_words_of_a_plan_name_what_is_read(wide: ViewLake) -> None:
    wide.sql("UPDATE {db}.facts SET v = 'new' WHERE id = 1", "UPDATE {db}.partners SET name = 'x' WHERE k = 1")
    query = wide.view("v", "SELECT f.id, p.name FROM {db}.facts f LEFT JOIN {db}.partners p ON f.k = p.k", beyond=True)
    words = wide.plan(query).in_words()
    assert re.search(r"keys, partners of changed rows, by k of scan 0, k of scan 1 \(facts \(1, 2\]: \d+ rows", words)
