"""R87, R88: a look at what is unread reads what came since the last one, and says what a first look would say."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from tests.engine.passing_time import age_table
from tests.guarantees.world import START, World
from tidemark.lake import delta_log
from tidemark.model.streams import StreamMode
from tidemark.streams.worker import missing_files
from tidemark.streams.worker.sources import open_table
from tidemark.streams.worker.status import StreamStatus, status_of
from tidemark.streams.worker.streams import get_stream
from tidemark.streams.worker.unread_commits import CommitCache

DAY = timedelta(days=1)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Callable[..., CommitCache]:
    """Puts an empty memory in place of the process's."""

    def put(**how: int) -> CommitCache:
        made = CommitCache(**how)
        monkeypatch.setattr(missing_files, "COMMIT_CACHE", made)
        return made

    return put


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the commits that were parsed whole."""
    names: list[str] = []
    parse = delta_log._by_kind

    def noted(data: bytes, name: str) -> object:
        names.append(name)
        return parse(data, name)

    monkeypatch.setattr(delta_log, "_by_kind", noted)
    return names


def look(world: World, name: str = "s") -> StreamStatus:
    return status_of(get_stream(world.store, name), open_table, now=world.clock.now)


def seen(status: StreamStatus) -> tuple[object, ...]:
    return status.head, status.lost_version, status.kept, str(status.problem)


def test_a_second_look_parses_what_is_new_and_the_commit_before_it(
    world: World, fresh: Callable[..., CommitCache], read: list[str]
) -> None:
    fresh()
    for _ in range(30):
        world.source.append()
    look(world)
    assert len(read) == 30
    read.clear()
    look(world)
    assert len(read) == 1
    world.source.append()
    read.clear()
    look(world)
    assert len(read) == 2


def test_a_stream_that_may_have_lost_files_is_looked_at_for_as_little(
    world: World, fresh: Callable[..., CommitCache], read: list[str]
) -> None:
    fresh()
    world.stream("appended", mode=StreamMode.APPEND_ONLY)
    for _ in range(10):
        world.source.append()
    world.source.truncate(START.timestamp())
    world.clock.go(9 * DAY)
    assert look(world, "appended").lost_version == 1
    read.clear()
    world.source.append()
    assert look(world, "appended").lost_version == 1
    assert len(read) == 2


def cut(world: World) -> None:
    """The newest commit is gone, as after a restore from a backup: the table id stays."""
    source = world.source
    if source.head() > 3:
        (source.log / f"{source.head():020d}.json").unlink()
        del source.written[source.head()]


def take_back(world: World, chance: random.Random) -> None:
    for file in chance.sample(sorted(world.source._files()), len(world.source._files()) // 2):
        (world.source.path / file).write_bytes(b"1")


def act(world: World, chance: random.Random) -> None:
    source = world.source
    days = f"interval {chance.randint(1, 9)} days"
    acts: list[Callable[[], object]] = [
        source.append,
        lambda: source.truncate(world.clock.now.timestamp()),
        lambda: source.restore(chance.randint(0, source.head())),
        source.optimize,
        lambda: source.configure(delta__deletedFileRetentionDuration=days),
        lambda: cut(world),
        lambda: take_back(world, chance),
    ]
    chance.choice(acts)()
    world.clock.go(chance.random() * 2 * DAY)


@pytest.mark.parametrize("seed", range(12))
def test_looks_that_go_on_say_what_first_looks_say(
    world: World, fresh: Callable[..., CommitCache], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Files come, go, come back and are taken; the log is extended, and begun anew under the same table id."""
    chance = random.Random(seed)
    names = ["s", "appended", "steps"]
    world.stream("appended", mode=StreamMode.APPEND_ONLY)
    world.stream("steps", mode=StreamMode.EVERY_CHANGE)
    memory = CommitCache()
    for _ in range(12):
        act(world, chance)
        fresh()
        first = [seen(look(world, name)) for name in names]
        monkeypatch.setattr(missing_files, "COMMIT_CACHE", memory)
        assert [seen(look(world, name)) for name in names] == first


def test_a_log_that_was_cut_and_written_anew_is_read_anew(world: World, fresh: Callable[..., CommitCache]) -> None:
    fresh()
    source = world.source
    source.append()
    source.append()
    assert look(world).kept == missing_files.KeptBytes()
    (source.log / f"{2:020d}.json").unlink()
    del source.written[2]
    source.truncate(START.timestamp())
    kept = look(world).kept
    assert kept is not None
    assert kept.files == 1


def test_time_that_a_test_lets_pass_is_seen_by_the_next_look(world: World, fresh: Callable[..., CommitCache]) -> None:
    """Also if the newest commit has no time in it, by which a rewritten log would be known."""
    fresh()
    source = world.source
    world.stream("appended", mode=StreamMode.APPEND_ONLY)
    source.append()
    source.truncate(START.timestamp())
    source.configure(comment="the newest commit")
    assert look(world, "appended").lost_version is None
    age_table(source.path, 9 * DAY)
    assert look(world, "appended").lost_version == 1


def test_memory_is_bounded_by_tables_and_by_files(world: World, fresh: Callable[..., CommitCache]) -> None:
    memory = fresh(most_tables=2)
    for number in range(4):
        world.stream(f"s{number}")
        world.source.append()
    for number in range(4):
        look(world, f"s{number}")
    assert len(memory) == 2
    small = fresh(most_files=2)
    assert look(world, "s0").kept is not None
    assert len(small) == 0


def test_many_threads_that_look_at_one_offset_read_it_once(
    world: World, fresh: Callable[..., CommitCache], read: list[str]
) -> None:
    fresh()
    for _ in range(20):
        world.source.append()
    with ThreadPoolExecutor(6) as pool:
        found = set(pool.map(lambda _: seen(look(world)), range(6)))
    assert (len(found), len(read)) == (1, 25)
