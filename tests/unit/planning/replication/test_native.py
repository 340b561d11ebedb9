"""A change of type that rewrites values in the source is known from one that does not."""

from __future__ import annotations

import pytest

from tidemark.replication.planning.native import holds_all


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("character varying(9)", "character varying(10)"),
        ("character varying(9)", "character varying"),
        ("character varying(9)", "text"),
        ("character varying(9)[]", "text[]"),
        ("numeric(9,2)", "numeric(10,2)"),
        ("numeric(9,2)", "numeric"),
        ("smallint", "bigint"),
        ("timestamp(0) without time zone", "timestamp(3) without time zone"),
        ("timestamp(3) with time zone", "timestamp with time zone"),
        ("shop.mood", "shop.mood"),
    ],
)
def test_wider_types_keep_every_value(old: str, new: str) -> None:
    assert holds_all(old, new)
    assert old == new or not holds_all(new, old)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("character(3)", "text"),
        ("character(3)", "character(5)"),
        ("text", "character varying(9)"),
        ("text", "text[]"),
        ("timestamp without time zone", "timestamp(0) without time zone"),
        ("timestamp without time zone", "time without time zone"),
        ("time without time zone", "time with time zone"),
        ("numeric(40,2)", "numeric(45,4)"),
        ("numeric(9,2)", "numeric(3,-2)"),
        ("numeric", "numeric(40,2)"),
        ("json", "jsonb"),
        ("interval", "interval day"),
        ("uuid", "text"),
        ("shop.mood", '"Other"'),
    ],
)
def test_what_may_rewrite_values_does_not_keep_them(old: str, new: str) -> None:
    assert not holds_all(old, new)
