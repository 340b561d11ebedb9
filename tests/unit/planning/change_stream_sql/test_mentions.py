"""What of change streams is found in a query, and put in its place."""

from __future__ import annotations

import pytest

from tidemark.change_streams.planning.sql.queries import CatalogView, find_mentions, may_mention, with_mentions

STREAMS = ["SingersNameStream", "json_s", "s"]


def replaced(text: str) -> str:
    found = find_mentions(text, STREAMS)
    names = {
        one: f"<{one.name}>" if isinstance(one, CatalogView) else f"<{one.stream}{':json' if one.as_json else ''}>"
        for one in found
    }
    return with_mentions(text, names)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT ChangeRecord FROM READ_SingersNameStream (start_timestamp => NULL)",
         "SELECT ChangeRecord FROM <singersnamestream> (start_timestamp => NULL)"),
        ("select * from read_SINGERSNAMESTREAM(1)", "select * from <singersnamestream>(1)"),
        ("SELECT * FROM `READ_s`(1)", "SELECT * FROM <s>(1)"),
        ('SELECT * FROM "spanner"."read_json_SingersNameStream" (1)', "SELECT * FROM <singersnamestream:json> (1)"),
        ("SELECT * FROM spanner.read_json_s(1)", "SELECT * FROM <s:json>(1)"),
        ("SELECT * FROM read_json_s(1)", "SELECT * FROM <s:json>(1)"),
        ("SELECT * FROM READ_s(1) a JOIN READ_s(2) b", "SELECT * FROM <s>(1) a JOIN <s>(2) b"),
        ("SELECT * FROM information_schema.change_streams", "SELECT * FROM <CHANGE_STREAMS>"),
        ("SELECT t.* FROM INFORMATION_SCHEMA.CHANGE_STREAM_TABLES AS t, INFORMATION_SCHEMA.CHANGE_STREAM_OPTIONS",
         "SELECT t.* FROM <CHANGE_STREAM_TABLES> AS t, <CHANGE_STREAM_OPTIONS>"),
    ],
)  # fmt: skip
def test_functions_and_views_are_found_whatever_their_case_and_dialect(text: str, wanted: str) -> None:
    assert may_mention(text)
    assert replaced(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM READ_other(1)",
        "SELECT * FROM READ_s",
        "SELECT 'READ_s(1)' AS x -- READ_s(1)",
        "SELECT * FROM mine.READ_s(1)",
        "SELECT * FROM change_streams",
        "SELECT * FROM information_schema.change_stream_privileges",
        "SELECT 'INFORMATION_SCHEMA.CHANGE_STREAMS'",
        "SELECT * FROM READ_s(1) WHERE x = '",
    ],
)
def test_everything_else_is_left_to_spark(text: str) -> None:
    assert find_mentions(text, STREAMS) == ()


def test_a_stream_named_json_s_is_read_by_its_own_function_where_there_is_no_s() -> None:
    (only,) = find_mentions("SELECT * FROM READ_json_s(1)", ["json_s"])
    assert not isinstance(only, CatalogView)
    assert (only.stream, only.as_json) == ("json_s", False)
    assert replaced("SELECT * FROM READ_json_s(1)") == "SELECT * FROM <s:json>(1)"
