"""A changed row fixes columns of its partners, so that no others need be read."""

from __future__ import annotations

import pytest
from tests.unit.planning.views.catalogs import Catalog

from tidemark.changes.planning.views.keys import key_links
from tidemark.changes.planning.views.parts import numbered

COLUMNS = {"lake.db.t": ("a", "b", "k"), "lake.db.u": ("a", "c", "k"), "lake.db.w": ("k", "z")}


def links(text: str, *columns: str) -> dict[int, set[str]]:
    """For each scan that may change: `column=scan.column`."""
    query = Catalog().query(text, *columns, beyond=True)
    listed = [COLUMNS[base] for base in query.bases]
    return {
        scan: {f"{link.changed}={link.scan}.{link.column}" for link in key_links(query, scan, listed)}
        for scan in numbered(query).bases
    }


@pytest.mark.parametrize(
    "text",
    [
        "SELECT b FROM t JOIN u ON t.k = u.k",
        "SELECT b FROM t JOIN u USING (k)",
        "SELECT b FROM t, u WHERE (t.k = u.k) AND b > 1",
        "SELECT b FROM (SELECT k AS q, b FROM t) AS x JOIN u ON q = u.k",
        "SELECT b FROM t AS x(a, b, q) JOIN u ON q = u.k",
        "SELECT b FROM (SELECT * FROM t) AS x JOIN u AS y ON x.k = y.k",
        "SELECT b FROM (t JOIN u ON t.k = u.k)",
    ],
)
def test_an_equality_of_columns_links_both_sides_however_it_is_written(text: str) -> None:
    assert links(text, "b") == {0: {"k=1.k"}, 1: {"k=0.k"}}


def test_equalities_hold_over_several_tables() -> None:
    found = links("SELECT b FROM t JOIN u ON t.k = u.k JOIN w ON u.k = w.k", "b")
    assert found[0] == {"k=1.k", "k=2.k"}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT b FROM t JOIN u ON t.k = u.k + 1",
        "SELECT b FROM t JOIN u ON t.k < u.k",
        "SELECT b FROM t JOIN u ON t.k = u.k OR t.a = u.a",
        "SELECT b FROM t LEFT JOIN u ON t.k = u.k",
        "SELECT b FROM t CROSS JOIN u",
        "SELECT b FROM t NATURAL JOIN u",
    ],
)
def test_what_does_not_hold_for_every_row_links_nothing(text: str) -> None:
    assert links(text, "b") == {0: set(), 1: set()}


def test_each_arm_of_a_union_is_linked_and_the_arms_are_not_linked_with_each_other() -> None:
    text = "SELECT y FROM (SELECT a, k FROM t UNION ALL SELECT c, k FROM u) AS x(y, q) JOIN w ON x.q = w.k"
    assert links(text, "y") == {0: {"k=2.k"}, 1: {"k=2.k"}, 2: {"k=0.k", "k=1.k"}}


def test_an_equality_in_one_arm_does_not_hold_in_the_other() -> None:
    text = (
        "SELECT b FROM (SELECT a, b FROM t WHERE a = b UNION ALL SELECT a, c FROM u) AS x(p, q) "
        "JOIN w ON x.p = w.k JOIN w AS w2 ON x.q = w2.z"
    )
    found = links(text.replace("SELECT b", "SELECT p", 1), "p")
    assert "k=3.z" not in found[2]
    assert found[2] == {"k=0.a", "k=0.b", "k=1.a"}
    assert found[1] == {"a=2.k", "c=3.z"}
