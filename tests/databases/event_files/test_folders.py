"""A folder of Datastream's files is read from any place on, and what is wrong in it is named."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.databases.event_files.dropped import (
    address_of,
    drop,
    drop_avro,
    event,
    read_events,
    reader_of,
    require_kept,
    tables,
)
from tidemark.errors import EventFileInvalid, EventFilesOutOfOrder, InvalidArgument, SlotLost, SourceRefused
from tidemark.replication.planning.debezium_marks import Mark, mark_of
from tidemark.replication.sources.event_files.opening import open_folder
from tidemark.replication.sources.event_files.settings import settings_of
from tidemark.replication.sources.event_files.source import EventFileSource


def name(minute: int, file: str = "a.jsonl", table: str = "t") -> str:
    return f"d_{table}/2024/05/01/10/{minute:02d}/{file}"


def uuids(events: list[Any]) -> list[str]:
    return [one["uuid"] for one in events if one["change"] != "SCHEMA"]


@pytest.mark.parametrize("most", [1, 2, 4, 100])
def test_a_batch_ends_anywhere_and_the_next_continues_there(tmp_path: Path, most: int) -> None:
    address = address_of(tmp_path)
    for minute in range(3):
        drop(tmp_path, name(minute), [event(minute * 10 + one, one) for one in range(3)])
    whole = uuids(read_events(address))
    mark, found, at = Mark(), [], 1
    while at == 1 or open_folder(settings_of(address)).is_behind(mark.lanes, reader_of(address).end.lanes):
        reader = reader_of(address, max_events=most, start=mark, at=at)
        found += uuids(read_events(address, reader))
        mark, at = mark_of(reader.upto), at + 1
        require_kept(address, mark)
        if at == 2:  # an earlier minute, which is read behind the files of the first look
            drop(tmp_path, name(0, "0.jsonl"), [event(90, 9), event(91, 9)])
    assert found == [*whole, "t90", "t91"]


def test_a_file_of_an_earlier_minute_is_read_when_it_comes_and_its_events_are_known_to_be_late(tmp_path: Path) -> None:
    address = address_of(tmp_path)
    drop(tmp_path, name(5), [event(50, 1)])
    first = reader_of(address)
    assert uuids(read_events(address, first)) == ["t50"]
    assert not first.late
    drop(tmp_path, name(1), [event(10, 1)])
    second = reader_of(address, start=mark_of(first.upto), at=2)
    assert uuids(read_events(address, second)) == ["t10"]
    assert second.late
    drop(tmp_path, name(2, table="other"), [event(1, 1, table="other")])
    third = reader_of(address, start=mark_of(second.upto), at=3)
    assert uuids(read_events(address, third)) == ["other1"]
    assert not third.late  # tables have their own order


def test_late_events_say_nothing_about_columns(tmp_path: Path) -> None:
    address = address_of(tmp_path)
    drop(tmp_path, name(5), [event(50, 1, payload={"id": 1, "v": "a", "w": 5})])
    first = reader_of(address)
    read_events(address, first)
    drop(tmp_path, name(1), [event(10, 2, payload={"id": 2, "v": "b", "gone": "x"})])
    second = reader_of(address, start=mark_of(first.upto), at=2, schemas=first.schemas)
    (late,) = read_events(address, second)
    assert (late["change"], late["payload"]) == ("INSERT", {"id": "2", "v": "b", "w": None})
    assert second.changed == set()


def test_a_file_with_an_old_time_that_nobody_has_seen_is_named(tmp_path: Path) -> None:
    address = address_of(tmp_path)
    drop(tmp_path, name(5), [event(50, 1)])
    reader = reader_of(address)
    read_events(address, reader)
    late = drop(tmp_path, name(6, "b.jsonl"), [event(60, 1)])
    os.utime(late, (1, 1))
    with pytest.raises(EventFilesOutOfOrder, match=r"came with an old time.*its time is new"):
        require_kept(address, mark_of(reader.upto))
    os.utime(late)
    require_kept(address, mark_of(reader.upto))
    again = reader_of(address, start=mark_of(reader.upto), at=2)
    assert uuids(read_events(address, again)) == ["t60"]


def test_a_file_may_be_deleted_once_it_was_read_and_not_before(tmp_path: Path) -> None:
    address = address_of(tmp_path)
    files = [drop(tmp_path, name(minute), [event(minute, minute), event(minute + 20, 9)]) for minute in range(3)]
    reader = reader_of(address, max_events=3)
    assert len(uuids(read_events(address, reader))) == 3
    files[0].unlink()
    require_kept(address, mark_of(reader.upto))
    files[2].unlink()
    with pytest.raises(SlotLost, match="lost files before they were read"):
        require_kept(address, mark_of(reader.upto))


def test_a_file_with_an_old_time_amid_a_look_is_named_and_not_called_lost(tmp_path: Path) -> None:
    address = address_of(tmp_path)
    for minute in range(3):
        drop(tmp_path, name(minute), [event(minute, minute)])
    reader = reader_of(address, max_events=1)
    read_events(address, reader)
    late = drop(tmp_path, name(1, "b.jsonl"), [event(60, 1)])
    at = (tmp_path / name(1)).stat().st_mtime_ns
    os.utime(late, ns=(at, at))
    with pytest.raises(EventFilesOutOfOrder, match=r"came with an old time.*its time is new"):
        require_kept(address, mark_of(reader.upto))
    late.unlink()
    require_kept(address, mark_of(reader.upto))


def test_a_truncate_before_the_first_row_of_a_table_stops_nothing(tmp_path: Path) -> None:
    address = address_of(tmp_path)
    drop(tmp_path, name(1, table="new"), [event(1, 1, table="new", change_type="TRUNCATE", is_deleted=True)])
    drop(tmp_path, name(2), [event(2, 2)])
    reader = reader_of(address)
    assert uuids(read_events(address, reader)) == ["t2"]
    assert (reader.exhausted, reader.unasked) == (True, set())


def test_files_are_read_when_they_are_old_enough(tmp_path: Path) -> None:
    waiting = EventFileSource(address_of(tmp_path, wait_seconds="3600"))
    drop(tmp_path, name(1), [event(1, 1)])
    assert mark_of(waiting.current_position()).lanes == {}
    assert waiting.names().schemas == ()
    assert EventFileSource(address_of(tmp_path)).names().schemas == ("d",)


def test_an_event_that_comes_twice_is_one(tmp_path: Path) -> None:
    drop(tmp_path, name(1), [event(1, 1), event(2, 2), event(1, 1)])
    drop(tmp_path, name(2), [event(2, 2)])
    assert uuids(read_events(address_of(tmp_path))) == ["t1", "t2"]


CUT = json.dumps(event(2, 2))[:-40]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([event(1, 1), CUT], r"a\.jsonl: has no JSON object in line 2 .*the file may be cut off"),
        ([event(1, 1), "[]\n"], "has no event in line 2"),
        ([{"id": 1}], "has no event in line 1"),
        ([event(1, 1, payload={"id": 1, "v": "\ud800"})], "has no JSON object in line 1 .*surrogates not allowed"),
        ([event(1, 1) | {"source_metadata": {"primary_keys": ["id"]}}], "its source_metadata names no table"),
        ([event(1, 1, log_position="x")], "has no event in line 1"),
        ([event(1, 1, change_type="UPSERT")], "has no event in line 1"),
        ([event(1, 1) | {"payload": {"v": "a"}}], "its key has a column id, and its payload has none"),
    ],
)
def test_a_line_that_is_no_event_is_named(tmp_path: Path, lines: list[Any], said: str) -> None:
    drop(tmp_path, name(1), lines)
    with pytest.raises(EventFileInvalid, match=said):
        read_events(address_of(tmp_path))


def test_an_event_without_the_key_of_its_table_is_named(tmp_path: Path) -> None:
    drop(tmp_path, name(1), [event(1, 1), event(2, 2, primary_keys=[])])
    with pytest.raises(EventFileInvalid, match=r"a\.jsonl, 2: table d\.t: it has no key, which is id elsewhere"):
        read_events(address_of(tmp_path))


def test_a_table_whose_events_say_no_key_is_told_one_by_the_connection(tmp_path: Path) -> None:
    drop(tmp_path, name(1), [event(1, 1, primary_keys=None)])
    assert "extra keys" in str(tables(address_of(tmp_path))["d.t"].unsupported)
    named = address_of(tmp_path, keys={"d.*": ["id"]})
    assert tables(named)["d.t"].schema.keys == ("id",)
    assert read_events(named)[-1]["key"] == '["1"]'
    assert tables(address_of(tmp_path, keys={"d.t": []}))["d.t"].schema.keys == ()


def test_files_that_are_cut_off_are_named(tmp_path: Path) -> None:
    packed = drop(tmp_path, name(1, "a.jsonl.gz"), [])
    content = gzip.compress((json.dumps(event(1, 1)) + "\n").encode() * 50)
    packed.write_bytes(content[:-20])
    with pytest.raises(EventFileInvalid, match=r"a\.jsonl\.gz: cannot be unpacked"):
        read_events(address_of(tmp_path))


SCHEMA: dict[str, Any] = {"type": "record", "name": "other", "fields": [{"name": "id", "type": "int"}]}


def test_avro_of_another_schema_and_what_is_no_avro_are_named(tmp_path: Path) -> None:
    file = drop_avro(tmp_path, name(1, "a.avro"), SCHEMA, [{"id": 1}])
    with pytest.raises(EventFileInvalid, match="its schema other has no read_method, uuid, source_metadata, payload"):
        read_events(address_of(tmp_path))
    content = file.read_bytes()
    file.write_bytes(content.replace(b"avro.schema", b"avro.schemes"))
    with pytest.raises(EventFileInvalid, match="is not a file of events"):
        tables(address_of(tmp_path))
    file.write_bytes(content[:40])
    with pytest.raises(EventFileInvalid, match="is not a file of events"):
        tables(address_of(tmp_path))
    file.unlink()
    drop(tmp_path, name(1), [event(1, 1)])
    (tmp_path / name(1, "a.jsonl.schema")).write_text(json.dumps(SCHEMA))
    with pytest.raises(EventFileInvalid, match=r"a\.jsonl\.schema: is not a schema of events"):
        read_events(address_of(tmp_path))


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceRefused, match="nowhere"):
        EventFileSource(address_of(tmp_path / "nowhere")).current_position()
    drop(tmp_path, "2024/a.jsonl", [event(1, 1)])
    with pytest.raises(SourceRefused, match=r"no file in a folder <object>/yyyy/mm/dd/hh/mm"):
        EventFileSource(address_of(tmp_path)).current_position()
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(SourceRefused):
        EventFileSource(address_of(file)).current_position()


def test_other_files_are_not_looked_at(tmp_path: Path) -> None:
    drop(tmp_path, name(1), [event(1, 1)])
    drop(tmp_path, name(1, "notes.txt"), ["no event\n"])
    drop(tmp_path, "d_t/README.json", ["no event\n"])
    drop(tmp_path, name(1, "_SUCCESS.json"), ["no event\n"])
    assert uuids(read_events(address_of(tmp_path))) == ["t1"]


def test_it_stops_before_a_table_that_is_still_to_be_registered(tmp_path: Path) -> None:
    address = address_of(tmp_path)
    drop(tmp_path, name(1), [event(1, 1)])
    drop(tmp_path, name(2, table="new"), [event(3, 3, table="new")])
    drop(tmp_path, name(3), [event(2, 2)])
    reader = reader_of(address)
    reader.objects = {one: said for one, said in reader.objects.items() if one != "d.new"}
    assert uuids(read_events(address, reader)) == ["t1"]
    assert not reader.exhausted
    rest = reader_of(address, start=mark_of(reader.upto), at=2)
    assert uuids(read_events(address, rest)) == ["t2", "new3"]


def test_a_position_is_the_beginning_or_one_that_was_shown(tmp_path: Path) -> None:
    source = EventFileSource(address_of(tmp_path))
    assert source.parse_position("Beginning") == Mark().position
    assert source.parse_position(Mark(5).position.commit) == Mark(5).position
    with pytest.raises(InvalidArgument, match="cannot be written by hand"):
        source.parse_position("16/B374D848")


@pytest.mark.parametrize("said", [{"begin": "later"}, {"wait_seconds": "-1"}, {"wait_seconds": "soon"}])
def test_settings_that_are_none_are_refused(tmp_path: Path, said: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument):
        settings_of(address_of(tmp_path, **said))
