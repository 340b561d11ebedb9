"""Copies of a table have its id and its versions, and no answer of one is that of another."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.unit.lake.delta_directories import add, born, commit
from tidemark.lake.storage import canonical_uri
from tidemark.results.model.answers import TIME_ZONE, ReuseRules, StoredAnswer, WrittenAnswer
from tidemark.results.planning.explain import why_missed
from tidemark.results.planning.queries import Query, read_query
from tidemark.results.worker.asking import Asked, ask

RULES = (ReuseRules(), ReuseRules(moved_rows_count=True))


def asked(table: Path, rules: ReuseRules = RULES[0]) -> Asked:
    query = read_query("SELECT 1 FROM shop.orders")
    assert isinstance(query, Query)
    found = ask(
        query,
        settings={TIME_ZONE: "UTC"},
        locate=lambda _: canonical_uri(str(table)),
        options={},
        rules=rules,
        now=datetime(2026, 3, 1, tzinfo=UTC),
        streams=frozenset(),
        views=lambda _: (),
    )
    assert isinstance(found, Asked)
    return found


@pytest.mark.parametrize("rules", RULES)
def test_copies_that_were_written_since_have_keys_of_their_own(tmp_path: Path, rules: ReuseRules) -> None:
    born(tmp_path / "one", add("a"))
    shutil.copytree(tmp_path / "one", tmp_path / "other")
    assert asked(tmp_path / "one", rules).key == asked(tmp_path / "other", rules).key
    commit(tmp_path / "one", 1, add("b"))
    commit(tmp_path / "other", 1, add("c"))
    assert asked(tmp_path / "one", rules).key != asked(tmp_path / "other", rules).key


def test_a_table_that_was_set_back_by_copying_files_has_another_key_and_a_reason(tmp_path: Path) -> None:
    table = tmp_path / "one"
    born(table, add("a"))
    commit(table, 1, add("b"))
    before = asked(table)
    commit(table, 1, add("c"))
    after = asked(table)
    assert after.key != before.key
    assert [(one.table_id, one.content) for one in after.leaves] == [("id-1", 1)]
    kept = _kept(before)
    missed = why_missed([kept], after.key, after.settings, after.leaves, kept.created_at)
    assert "shop.orders has another version 1: a copy of the table" in missed.text


def test_a_commit_that_only_moves_rows_keeps_the_key(tmp_path: Path) -> None:
    table = tmp_path / "one"
    born(table, add("a"))
    commit(table, 1, add("b"))
    before = asked(table).key
    commit(table, 2, add("c", data_change=False))
    assert asked(table).key == before


def _kept(one: Asked) -> StoredAnswer:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    written = WrittenAnswer("file:///x", (), 0, 0, "{}", "UTC")
    return StoredAnswer("u", one.key, one.text, "d", one.leaves, one.settings, written, at, at, at, at)
