"""With which event a file ends: by size, by source time, and at each schema, whichever is first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tidemark.replication.model.jobs import FileFormat
from tidemark.replication.planning.file_rotation import FilePart, Rotation, file_name, next_part

BEGAN = datetime(2026, 3, 1, 12, 59, 30, tzinfo=UTC)
SMALL = Rotation(100, timedelta(seconds=60))
Told = tuple[str, int, int]  # schema, seconds since BEGAN, bytes


def files_of(events: Sequence[Told], rotation: Rotation = SMALL) -> list[list[Told]]:
    found: list[list[Told]] = []
    part: FilePart | None = None
    for event in events:
        schema, second, size = event
        part = next_part(part, rotation, group=(schema,), at=BEGAN + timedelta(seconds=second), size=size)
        if part.events == 1:
            found.append([])
        found[-1].append(event)
    return found


def test_a_file_ends_before_it_would_be_too_large() -> None:
    events = [("a", 0, 40), ("a", 0, 60), ("a", 0, 1), ("a", 0, 500), ("a", 0, 1)]
    assert [len(file) for file in files_of(events)] == [2, 1, 1, 1]


def test_a_file_ends_at_the_interval_since_its_first_event() -> None:
    events = [("a", 0, 1), ("a", 59, 1), ("a", 60, 1), ("a", 119, 1), ("a", 120, 1)]
    assert [len(file) for file in files_of(events)] == [2, 2, 1]


def test_a_file_ends_at_each_change_of_the_schema_also_back_to_an_earlier_one() -> None:
    assert [len(file) for file in files_of([("a", 0, 1), ("b", 0, 1), ("b", 1, 1), ("a", 1, 1)])] == [1, 2, 1]


def test_the_first_of_the_rules_wins() -> None:
    events = [("a", 0, 90), ("a", 30, 20), ("a", 89, 20), ("a", 90, 20), ("b", 91, 1)]
    assert [len(file) for file in files_of(events)] == [1, 2, 1, 1]


def test_an_event_whose_sources_clock_went_back_stays_in_its_file() -> None:
    assert len(files_of([("a", 50, 1), ("a", -500, 1), ("a", 109, 1)])) == 1


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 500), st.integers(1, 150)), max_size=60))
def test_every_event_is_in_one_file_and_no_file_breaks_a_rule(told: list[Told]) -> None:
    events = sorted(told, key=lambda one: one[1])
    files = files_of(events)
    assert [event for file in files for event in file] == events
    for file in files:
        assert len({schema for schema, _, _ in file}) == 1
        assert file[-1][1] - file[0][1] < 60
        assert len(file) == 1 or sum(size for _, _, size in file) <= 100


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 500), st.integers(1, 150)), min_size=1, max_size=60))
def test_where_a_file_ends_does_not_depend_on_what_follows(told: list[Told]) -> None:
    events = sorted(told, key=lambda one: one[1])
    whole = files_of(events)
    for end in range(1, len(events)):
        *ended, _ = files_of(events[:end])
        assert ended == whole[: len(ended)]


def named(folder: str = "shop_orders", identity: str = "r|1|k") -> str:
    return file_name(
        folder,
        BEGAN,
        position="00000000016B3748",
        sequence=7,
        identity=identity,
        read_method="postgres-cdc-wal",
        kind=FileFormat.AVRO,
    )


def test_a_name_has_folder_minute_and_place_in_the_log() -> None:
    folder, *minute, file = named().split("/")
    assert (folder, minute) == ("shop_orders", ["2026", "03", "01", "12", "59"])
    assert file.startswith("00000000016B3748-0000000007_")
    assert file.endswith("_postgres-cdc-wal.avro")
    assert named() == named()
    assert named(identity="r|2|k") != named()


def test_a_name_is_one_part_of_a_path_whatever_the_table_is_called() -> None:
    assert named("a/../b").split("/")[0] == "a%2F..%2Fb"
    assert named("..").split("/")[0] == "%2E%2E"
    assert named("käse 100%").split("/")[0] == "käse%20100%25"
