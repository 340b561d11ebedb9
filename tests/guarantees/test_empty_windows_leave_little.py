"""A stream that is looked at again and again and has nothing leaves few rows, and forgets no key too soon."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from tidemark.control.schema import all_tables
from tidemark.streams.worker.begin import NOTHING_IS_REMEMBERED

from .world import World, key_of

MINUTE = timedelta(minutes=1)
REMEMBERED = NOTHING_IS_REMEMBERED // MINUTE


def rows_of(world: World) -> dict[str, int]:
    def count(connection: sa.Connection) -> dict[str, int]:
        tables = all_tables().tables.values()
        return {t.name: connection.execute(sa.select(sa.func.count()).select_from(t)).scalar_one() for t in tables}

    return {name: number for name, number in world.store.read(count).items() if number}


def look(world: World, times: int, name: str, streams: tuple[str, ...] = ("s",)) -> None:
    for number in range(times):
        assert world.delivered(f"{name} {number}", streams=streams).fresh
        world.clock.go(MINUTE)


@pytest.mark.parametrize("streams", [("s",), ("s", "t"), ("t", "s")])
def test_looks_that_find_nothing_use_their_rows_again(world: World, streams: tuple[str, ...]) -> None:
    world.stream("t", "other")
    look(world, REMEMBERED + 2, "first", streams)
    before = rows_of(world)
    look(world, 15, "then", streams)
    assert rows_of(world) == before
    assert len(world.history()) == 2  # its creation, and the last look


def test_looks_of_several_plans_keep_out_of_each_others_way(world: World) -> None:
    world.stream("t", "other")
    for round_number in range(REMEMBERED // 10 + 2):
        look(world, 5, f"one {round_number}")
        look(world, 5, f"both {round_number}", ("s", "t"))
    before = rows_of(world)
    look(world, 5, "one again")
    look(world, 5, "both again", ("s", "t"))
    assert rows_of(world) == before


def test_a_key_that_found_nothing_is_remembered_for_its_retries(world: World) -> None:
    first = world.delivered("one")
    look(world, 5, "more")
    world.source.append()
    again = world.delivered("one")
    assert (again.fresh, again.result, world.offset()) == (False, first.result, 0)


def test_a_key_whose_rows_were_used_again_takes_what_is_there_once(world: World) -> None:
    look(world, REMEMBERED + 5, "look")
    world.source.append()
    world.consume("look 0")
    world.consume("look 1")
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)
    assert world.delivered("look 0").fresh is False


def test_what_delivered_is_never_used_again(world: World) -> None:
    world.source.append()
    result = world.consume("delivers").result
    look(world, REMEMBERED + 5, "look")
    assert world.delivered("delivers").result == result
    assert [m.run for m in world.history()][1] == str(key_of("delivers"))


def test_the_history_tells_of_the_last_look_and_of_every_move(world: World) -> None:
    look(world, 3, "one")
    world.source.append()
    world.consume("delivers")
    look(world, 3, "two")
    runs = [move.run and move.run.split("/")[1] for move in world.history()]
    assert runs == [None, "one 2", "delivers", "two 2"]
