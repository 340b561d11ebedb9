"""Any definition, written as SQL, is read as the same definition."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tidemark.change_streams.planning.definition import TableRequest, WatchRequest
from tidemark.change_streams.planning.options import OPTIONS
from tidemark.change_streams.planning.sql.parse import parse_change_stream_sql
from tidemark.change_streams.planning.sql.statements import CreateChangeStream, SetChangeStreamFor
from tidemark.sql.identifiers import quoted, spelled

WORDS = st.one_of(
    st.sampled_from(
        ["ALL", "FOR", "OPTIONS", "SELECT", "null", "a b", "x-y", "ünder", "1st", "it's", "a`b", "Singers"]
    ),
    st.text("abcXYZ_09", min_size=1, max_size=8),
)
COLUMNS = st.one_of(st.none(), st.lists(WORDS, max_size=4).map(tuple))
ASKS = st.tuples(st.lists(WORDS, min_size=1, max_size=3), COLUMNS)
WATCHES = st.one_of(
    st.just(WatchRequest(everything=True)), st.just(WatchRequest()), st.lists(ASKS, min_size=1, max_size=4)
)
OF_TYPE = {"STRING": st.text("abc1d_ ", max_size=6), "BOOL": st.booleans()}
GIVEN = st.fixed_dictionaries({}, optional={name: st.none() | OF_TYPE[kind] for name, kind in OPTIONS.items()})


def table(parts: list[str], columns: tuple[str, ...] | None) -> str:
    name = ".".join(map(quoted, parts))
    return name if columns is None else f"{name}({', '.join(map(quoted, columns))})"


def value(given: Any) -> str:
    if isinstance(given, str):
        return f"'{given}'"
    return "NULL" if given is None else str(given)


@given(watch=WATCHES, options=GIVEN)
def test_a_definition_is_read_as_it_was_written(watch: Any, options: dict[str, Any]) -> None:
    if isinstance(watch, WatchRequest):
        clause, wanted = ("FOR ALL" if watch.everything else ""), watch
    else:
        clause = "FOR " + ", ".join(table(*request) for request in watch)
        wanted = WatchRequest(
            tables=tuple(TableRequest(".".join(map(spelled, parts)), columns) for parts, columns in watch)
        )
    said = ", ".join(f"{name} = {value(given)}" for name, given in options.items())
    read = parse_change_stream_sql(f"CREATE CHANGE STREAM s {clause} {f'OPTIONS ({said})' if options else ''};")
    assert isinstance(read, CreateChangeStream)
    assert (read.watch, read.options) == (wanted, options)
    if clause:
        altered = parse_change_stream_sql(f"alter change stream s set {clause}")
        assert isinstance(altered, SetChangeStreamFor)
        assert altered.watch == wanted
