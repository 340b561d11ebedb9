"""Files that Tidemark wrote are read back as the events that they were, in their order, from any place on."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from tests.databases.debezium.landed import address_of as envelopes_at
from tests.databases.debezium.landed import land
from tests.databases.debezium.landed import read_events as read_envelopes
from tests.databases.debezium.random_envelopes import RandomShop
from tests.databases.event_files.dropped import address_of, read_events, reader_of, require_kept
from tests.databases.event_files.own import as_logged, write_range
from tidemark.errors import EventFileInvalid, SlotLost, SourceRefused
from tidemark.replication.model.jobs import FileFormat
from tidemark.replication.planning.debezium_marks import Mark, mark_of

TOLD = ("read_method", "sequence", "change", "payload", "key", "old_key", "unchanged", "problem")


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    place, shop = tmp_path_factory.mktemp("envelopes"), RandomShop(7)
    for table, records in shop.envelopes(300).items():
        land(place, f"{table}.jsonl", records)
    return as_logged(read_envelopes(envelopes_at(place)))


def short(found: list[Any]) -> list[tuple[Any, ...]]:
    return [(one["table"], one["uuid"], *(one[name] for name in TOLD[2:])) for one in found]


def wanted(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    told = []
    for one in events:
        payload = json.loads(one["payload"])
        rest = [one[name] for name in TOLD[4:]]
        told.append((one["source_metadata"]["table"], one["uuid"], one["change"], payload, *rest))
    return told


def starts(events: list[dict[str, Any]], place: int) -> bool:
    """Whether another transaction begins there. A range has whole ones."""
    return bool(events[place]["position"] != events[place - 1]["position"])


@pytest.mark.parametrize("kind", FileFormat)
def test_events_come_back_as_they_were(tmp_path: Path, kind: FileFormat, events: list[dict[str, Any]]) -> None:
    half = next(place for place in range(len(events) // 2, len(events)) if starts(events, place))
    write_range(tmp_path, 1, events[:half], kind)
    write_range(tmp_path, 3, events[half:], kind)
    address = address_of(tmp_path)
    found, expected = short(read_events(address)), wanted(events)
    for one in (*found, *expected):  # Avro has no zeros at the end of a second
        if kind is FileFormat.AVRO and one[3].get("placed"):
            one[3]["placed"] = one[3]["placed"].rstrip("0")
    assert found == expected
    places = [(one["commit"], one["sequence"]) for one in read_events(address)]
    assert places == sorted(places)
    of_transactions = [(one["position"], one["sequence"]) for one in events]
    shared = [a[0] == b[0] for a, b in itertools.pairwise(of_transactions)]
    assert [a[0] == b[0] for a, b in itertools.pairwise(places)] == shared  # halves of a moved key have one position
    assert {one["change"] for one in events} == {"SCHEMA", "TRUNCATE", "INSERT", "UPDATE", "DELETE"}
    assert any(one["unchanged"] for one in events)
    assert any(one["old_key"] for one in events)


@pytest.mark.parametrize("most", [1, 13, 100])
def test_a_batch_ends_anywhere_and_a_range_comes_when_its_list_does(
    tmp_path: Path, most: int, events: list[dict[str, Any]]
) -> None:
    events = events[:90]
    address, mark, found, schemas = address_of(tmp_path), Mark(), [], dict[str, Any]()
    for number in range(3):
        write_range(tmp_path, 2 * number + 1, events[number * 30 : (number + 1) * 30], FileFormat.JSON)
        exhausted = False
        while not exhausted:
            reader = reader_of(address, max_events=most, start=mark, at=number + 1, schemas=schemas)
            reader.objects = {**reader_of(address).objects, **reader.objects}
            found += short(read_events(address, reader))
            mark, schemas, exhausted = mark_of(reader.upto), reader.schemas, reader.exhausted
            require_kept(address, mark)
            assert not reader.late
        assert found == wanted(events[: (number + 1) * 30])


def test_a_lost_file_a_changed_one_and_a_second_writer_are_named(tmp_path: Path, events: list[dict[str, Any]]) -> None:
    write_range(tmp_path, 1, events[:30], FileFormat.JSON)
    address = address_of(tmp_path)
    mark = mark_of((reader := reader_of(address, max_events=5)).upto)
    read_events(address, reader)
    mark = mark_of(reader.upto)
    file = next(tmp_path.glob("_control/2024/**/*.gz"))
    content = file.read_bytes()
    file.unlink()
    with pytest.raises(SlotLost, match="lost the file _control"):
        read_events(address, reader_with(reader, address))
    file.write_bytes(b"")
    with pytest.raises(EventFileInvalid, match=r"has 0 events, and was written with"):
        read_events(address, reader_with(reader, address))
    file.write_bytes(content)
    listed = next(tmp_path.glob("_control/_ranges/*.json"))
    (listed.parent / "000000000003_0123456789ab.json").write_bytes(listed.read_bytes())
    with pytest.raises(SourceRefused, match="several replications have written it"):
        require_kept(address, mark)
    (listed.parent / "000000000003_0123456789ab.json").unlink()
    listed.rename(listed.with_name(listed.name.replace("1", "9", 1)))
    with pytest.raises(SlotLost, match="lost the list of range 1"):
        require_kept(address, mark)


def reader_with(known: Any, address: Any) -> Any:
    """From the beginning, with the tables that a reader knew before the files were changed."""
    from dataclasses import fields, replace

    taken = {one.name for one in fields(known) if not one.init}
    assert taken == set()
    return replace(known, facts=known.facts[:1], events={}, start=Mark(), schemas={}, total=0)
