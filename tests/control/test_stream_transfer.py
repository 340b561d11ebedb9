"""Streams go from store to store by a document: all or none, checked first, no place lost or moved back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.guarantees.synthetic_tables import SyntheticTable
from tidemark.control.store import ControlStore
from tidemark.errors import (
    DocumentUnreadable,
    ImportRefused,
    InvalidArgument,
    SourceRecreated,
    StreamExists,
    StreamStale,
)
from tidemark.model.streams import Addressing, BaseOffset, Stream, StreamMode, TableRef
from tidemark.model.views import ViewQuery
from tidemark.streams.worker.streams import (
    advance_stream,
    create_stream,
    drop_stream,
    get_stream,
    list_streams,
    stream_history,
)
from tidemark.streams.worker.transfer import StreamFate, export_streams, import_streams

Edit = Callable[[dict[str, Any]], object]


@pytest.fixture
def table(tmp_path: Path) -> SyntheticTable:
    made = SyntheticTable(tmp_path / "orders")
    made.append()
    made.append()
    return made


@pytest.fixture
def old(tmp_path: Path, table: SyntheticTable) -> ControlStore:
    """A store with a stream on a table, at 1 of 2, and one on a view of that table joined with another, at 2 and 0."""
    store = ControlStore(f"sqlite:///{tmp_path}/old.db")
    other = SyntheticTable(tmp_path / "customers")
    orders = TableRef("s.orders", table.uri, table.table_id, Addressing.LAKE)
    create_stream(
        store, name="Bestellungen ä", source=orders, mode=StreamMode.APPEND_ONLY, at_version=0, who="ann", comment="c"
    )
    advance_stream(store, "Bestellungen ä", 1, "ann", "skipped")
    view = ViewQuery("v", "SELECT 1", "{}", ("s.orders", "s.customers"), {"spark.sql.ansi.enabled": None}, "digest")
    create_stream(
        store,
        name="sales",
        source=TableRef("v", "", "digest", Addressing.CATALOG),
        mode=StreamMode.STANDARD,
        at_version=2,
        who="ann",
        initial_rows=True,
        view=view,
        view_bases=(BaseOffset(orders, 2), BaseOffset(TableRef("s.customers", other.uri, other.table_id), 0)),
    )
    return store


def text_of(store: ControlStore) -> str:
    return json.dumps(export_streams(store))


def edited(store: ControlStore, edit: Edit, number: int = 0) -> dict[str, Any]:
    document = export_streams(store)
    edit(document["streams"][number]["stream"])
    return document


def facts(stream: Stream) -> Stream:
    return replace(stream, uid="", serial=0)


def test_streams_on_tables_and_views_come_to_another_store_as_they_were(old: ControlStore, store: ControlStore) -> None:
    imported = import_streams(store, text_of(old), who="ben")
    assert list_streams(store) == list_streams(old)
    assert {(one.fate, one.same_identity) for one in imported} == {(StreamFate.CREATED, True)}
    (move,) = stream_history(store, "sales")
    assert (move.who, move.to_version, old.store_id in move.why) == ("ben", 2, True)


def test_and_back_from_either_kind_of_store(old: ControlStore, store: ControlStore, tmp_path: Path) -> None:
    import_streams(store, text_of(old), who="ben")
    third = ControlStore(f"sqlite:///{tmp_path}/third.db")
    import_streams(third, text_of(store), who="eve")
    assert list_streams(third) == list_streams(old)


def test_named_streams_alone_are_exported_each_once(old: ControlStore) -> None:
    document = export_streams(old, ["SALES", "sales"])
    assert [one["stream"]["name"] for one in document["streams"]] == ["sales"]


def test_a_second_run_that_keeps_what_is_there_changes_nothing(
    old: ControlStore, store: ControlStore, table: SyntheticTable
) -> None:
    document = text_of(old)
    import_streams(store, document, who="ben", if_not_exists=True)
    advance_stream(store, "Bestellungen ä", 2, "ben", "went on")
    table.drop()  # what is kept is not looked at
    before, history = list_streams(store), stream_history(store, "Bestellungen ä")
    again = import_streams(store, document, who="ben", if_not_exists=True)
    assert {one.fate for one in again} == {StreamFate.KEPT}
    assert (list_streams(store), stream_history(store, "Bestellungen ä")) == (before, history)


def test_an_existing_stream_never_goes_back_by_itself(old: ControlStore, store: ControlStore) -> None:
    document = text_of(old)
    import_streams(store, document, who="ben")
    there = advance_stream(store, "Bestellungen ä", 2, "ben", "went on")
    with pytest.raises(StreamExists):
        import_streams(store, document, who="ben")
    assert get_stream(store, "Bestellungen ä").offset.version == 2
    (replaced, _) = import_streams(store, document, who="ben", or_replace=True)
    now = get_stream(store, "Bestellungen ä")
    assert (replaced.fate, replaced.same_identity, now.offset.version) == (StreamFate.REPLACED, False, 1)
    assert now.uid != there.uid  # V5
    with pytest.raises(InvalidArgument):
        import_streams(store, document, who="ben", or_replace=True, if_not_exists=True)


def test_what_one_stream_refuses_none_gets(old: ControlStore, store: ControlStore) -> None:
    document = text_of(old)
    import_streams(store, document, who="ben", new_identity=True)
    drop_stream(store, "Bestellungen ä", "ben")
    with pytest.raises(StreamExists) as refused:
        import_streams(store, document, who="ben")
    assert (refused.value.stream, [s.name for s in list_streams(store)]) == ("sales", ["sales"])


def test_a_dry_run_says_the_same_and_stores_nothing(old: ControlStore, store: ControlStore) -> None:
    document = text_of(old)
    said = import_streams(store, document, who="ben", dry_run=True)
    assert list_streams(store) == ()
    assert import_streams(store, document, who="ben") == said


def test_an_identity_that_was_used_here_is_not_used_again(old: ControlStore, store: ControlStore) -> None:
    document = text_of(old)
    import_streams(store, document, who="ben")
    renamed = edited(old, lambda stream: stream.update(name="another"))
    with pytest.raises(ImportRefused) as refused:
        import_streams(store, renamed, who="ben", if_not_exists=True)
    assert (refused.value.stream, refused.value.field) == ("another", "uid")
    drop_stream(store, "Bestellungen ä", "ben")
    (back, _) = import_streams(store, document, who="ben", if_not_exists=True)
    assert (back.fate, back.same_identity) == (StreamFate.CREATED, False)
    assert facts(get_stream(store, "Bestellungen ä")) == facts(get_stream(old, "Bestellungen ä"))


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        (lambda s: s.pop("mode"), "mode"),
        (lambda s: s.update(mode="other"), "mode"),
        (lambda s: s.update(colour="red"), "colour"),
        (lambda s: s["offset"].update(version="1"), "offset.version"),
        (lambda s: s["offset"].update(version=True), "offset.version"),
        (lambda s: s["offset"].update(version=-1), "offset.version"),
        (lambda s: s["offset"].update(version=2**63), "offset.version"),
        (lambda s: s["offset"].update(table_id="x"), "offset.table_id"),
        (lambda s: s["source"].update(addressing=1), "source.addressing"),
        (lambda s: s.update(source=[]), "source"),
        (lambda s: s.update(created_at="2026-11-22T03:00:00"), "created_at"),
        (lambda s: s.update(uid=""), "uid"),
        (lambda s: s.update(view_bases={}), "view_bases"),
    ],
)
def test_a_field_that_does_not_fit_is_named_with_its_stream_before_anything_is_written(
    old: ControlStore, tmp_path: Path, edit: Edit, field: str
) -> None:
    new = ControlStore(f"sqlite:///{tmp_path}/new.db")
    with pytest.raises(ImportRefused) as refused:
        import_streams(new, edited(old, edit), who="ben", check_sources=False)
    assert (refused.value.stream, refused.value.field) == ("Bestellungen ä", field)
    assert list_streams(new) == ()


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        (lambda s: s["view_bases"].pop(), "view_bases"),
        (lambda s: s["view_bases"][1].update(version=5), "offset.version"),
        (lambda s: s["view_bases"][1]["table"].pop("path"), "view_bases[1].table.path"),
        (lambda s: s["view"].update(digest="other"), "view.digest"),
        (lambda s: s["view"]["settings"].update(a=1), "view.settings['a']"),
        (lambda s: s.update(name="BESTELLUNGEN Ä"), "name"),
    ],
)
def test_so_is_one_of_a_view(old: ControlStore, tmp_path: Path, edit: Edit, field: str) -> None:
    with pytest.raises(ImportRefused) as refused:
        import_streams(ControlStore(f"sqlite:///{tmp_path}/new.db"), edited(old, edit, 1), who="ben")
    assert refused.value.field == field


@pytest.mark.parametrize("document", ["", "[]", "{}", '{"tidemark_streams": 2}', '{"tidemark_streams": 1}'])
def test_what_is_no_document_of_this_form_is_refused(tmp_path: Path, document: str) -> None:
    with pytest.raises(DocumentUnreadable):
        import_streams(ControlStore(f"sqlite:///{tmp_path}/new.db"), document, who="ben")


def test_a_source_that_the_offset_cannot_go_on_in_is_named_unless_nobody_looks(
    old: ControlStore, tmp_path: Path, table: SyntheticTable
) -> None:
    new, document = ControlStore(f"sqlite:///{tmp_path}/new.db"), text_of(old)
    too_far = edited(old, lambda stream: stream["offset"].update(version=9))
    with pytest.raises(ImportRefused) as refused:
        import_streams(new, too_far, who="ben")
    assert (refused.value.stream, refused.value.field) == ("Bestellungen ä", "offset.version")
    table.append()
    table.checkpoint()
    table.clean_up(before=3)
    with pytest.raises(StreamStale):
        import_streams(new, document, who="ben")
    table.recreate()
    with pytest.raises(SourceRecreated) as recreated:
        import_streams(new, document, who="ben")
    assert recreated.value.stream == "Bestellungen ä"
    table.drop()
    with pytest.raises(ImportRefused) as gone:
        import_streams(new, document, who="ben")
    assert (gone.value.stream, gone.value.field, list_streams(new)) == ("Bestellungen ä", "source", ())
    assert len(import_streams(new, document, who="ben", check_sources=False)) == 2
