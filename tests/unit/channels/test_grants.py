"""Rights of the ingest service's tokens: by the names of tables, whole ones."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tidemark.channels.model.grants import Grant
from tidemark.channels.planning.grants import allows, allows_pipe


def grant(*patterns: str) -> Grant:
    return Grant("app", "digest", patterns, datetime(2026, 1, 1, tzinfo=UTC), patterns)


@pytest.mark.parametrize("name", ["db.orders", "DB.Orders", "db.a b"])
def test_a_star_is_any_text_without_a_point(name: str) -> None:
    assert allows(grant("db.*"), name)
    assert allows_pipe(grant("DB.*"), name)


@pytest.mark.parametrize("name", ["db.", "db. ", "db.\n", ".orders", "db", "db..orders", ""])
def test_a_name_that_lacks_a_part_is_allowed_by_no_star(name: str) -> None:
    """`db.` is a spelling of the table `db`, which is outside of the schema `db`."""
    assert not allows(grant("db.*", "*.orders"), name)
    assert not allows_pipe(grant("db.*", "*.orders"), name)
