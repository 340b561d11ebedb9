"""The work of tasks in parts: transactions, touched and owned objects, each by a cursor of its own. No Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.airflow.monitored import DAG, Monitored
from tidemark.control.cursors import cursor_after
from tidemark.control.run_keys import RunPart
from tidemark.control.schema import objects
from tidemark.errors import CursorInvalid, InvalidArgument
from tidemark.streams.store.schema import transactions
from tidemark.streams.worker.object_needs import NOTHING_KNOWN
from tidemark.streams.worker.runs import LISTS, ListName, RunShown, RunWish, shown_run

ALL = RunWish(RunPart(DAG), limit=3)
OF_A_RUN = RunWish(RunPart(DAG, "nightly"), limit=3)


@pytest.fixture
def made(task_store: str, tmp_path: Path) -> Iterator[Monitored]:
    """Eight streams of a DAG, each with a transaction of one run. Two transactions were opened at once."""
    found = Monitored(tmp_path / "lake", task_store)
    found._clock(hours=40)
    for number in range(8):
        found._stream(f"s{number}")
        found._commit(f"s{number}", times=1)
        found._clock(hours=30 - number // 2)
        found._consume("nightly", f"s{number}")
    yield found
    found.store.close()


def shown(made: Monitored, wish: RunWish) -> RunShown:
    return made.store.read(lambda c: shown_run(c, wish, NOTHING_KNOWN, now=made.now))


def walked(made: Monitored, wish: RunWish, name: ListName, uids: Callable[[RunShown], list[str]]) -> list[str]:
    found: list[str] = []
    part = shown(made, wish)
    while True:
        assert len(uids(part)) <= 3
        found += uids(part)
        if name not in part.cursors:
            return found
        part = shown(made, replace(wish, cursor=part.cursors[name]))


@pytest.mark.parametrize("asked", [RunPart("Shop"), RunPart("shop", "R"), RunPart("shop", "r", "T"), RunPart("sho_")])
def test_names_of_runs_are_compared_letter_by_letter(made: Monitored, asked: RunPart) -> None:
    def found(part: RunPart) -> bool:
        return bool(made.store.read(lambda c: c.execute(sa.select(part.has(sa.literal("shop/r/t/-1")))).scalar_one()))

    assert not found(asked)
    assert all(found(part) for part in (RunPart("shop"), RunPart("shop", "r"), RunPart("shop", "r", "t", -1)))


def of_transactions(part: RunShown) -> list[str]:
    return [str(one.transaction.key) for one in part.transactions]


def of_owned(part: RunShown) -> list[str]:
    return [one.uid for one in part.owned]


def of_touched(part: RunShown) -> list[str]:
    return [one.uid for one, _ in part.touched]


@pytest.mark.parametrize(
    ("name", "uids", "wish"),
    [("transactions", of_transactions, ALL), ("owned", of_owned, ALL), ("touched", of_touched, OF_A_RUN)],
)
def test_parts_that_follow_each_other_are_the_whole(
    made: Monitored, name: ListName, uids: Callable[[RunShown], list[str]], wish: RunWish
) -> None:
    whole = uids(shown(made, replace(wish, limit=None)))
    assert len(whole) == 8
    assert walked(made, wish, name, uids) == whole


def test_a_list_that_continues_is_alone_and_others_are_on_the_first_part(made: Monitored) -> None:
    first = shown(made, OF_A_RUN)
    assert first.cursors.keys() == LISTS.keys()
    assert (first.total, first.more_touched) == (8, 5)
    assert {one.uid for one in first.next} == {*of_touched(first), *of_owned(first)}
    of = {name: shown(made, replace(OF_A_RUN, cursor=first.cursors[name])) for name in LISTS}
    assert {name: (len(one.transactions), len(one.touched), len(one.owned)) for name, one in of.items()} == {
        "transactions": (3, 0, 0), "touched": (0, 3, 0), "owned": (0, 0, 3),
    }  # fmt: skip
    assert of["touched"].more_touched == 2
    assert of["touched"].touched[0][1].why  # by the newest transactions
    assert (of["owned"].total, of["transactions"].next) == (8, ())


def test_a_transaction_that_comes_between_two_parts_moves_no_other(made: Monitored) -> None:
    first = shown(made, ALL)
    made._clock(hours=1)
    made._commit("s0", times=1)
    made._consume("later", "s0")
    with_new = of_transactions(shown(made, replace(ALL, limit=9)))
    rest = shown(made, replace(ALL, limit=9, cursor=first.cursors["transactions"]))
    assert [*of_transactions(first), *of_transactions(rest)] == with_new[1:]


def test_an_owned_object_with_a_hostile_name_has_its_place(made: Monitored) -> None:
    mine = (objects.c.kind == "stream") & (objects.c.name == "s3")
    name = "'; DROP TABLE x; -- \U0001f9ea%_"
    made.store.write(lambda c: c.execute(objects.update().where(mine).values(name=name, folded_name=name)))
    assert len(set(walked(made, ALL, "owned", of_owned))) == 8


def test_a_cursor_of_another_list_and_a_bad_limit_are_refused(made: Monitored) -> None:
    wrong = (
        "",
        "x",
        "W10",
        "bnVsbA",
        cursor_after("streams name False", ("a", "b")),
        cursor_after(LISTS["owned"], (1,)),
    )
    for cursor in wrong:
        with pytest.raises(CursorInvalid):
            shown(made, replace(ALL, cursor=cursor))
    for limit in (0, -1, 201):
        with pytest.raises(InvalidArgument, match="1 to 200"):
            replace(ALL, limit=limit)


def test_parts_of_10000_transactions_have_each_once(made: Monitored) -> None:
    row = made.store.read(lambda c: dict(c.execute(sa.select(transactions).limit(1)).mappings().one()))
    many = [{**row, "id": f"bulk-{number:05}", "task_id": "another", "map_index": number} for number in range(10_000)]
    made.store.write(lambda c: c.execute(transactions.insert(), many))
    seen: set[str] = set()
    part = shown(made, replace(ALL, limit=200))
    for number in range(3):
        seen.update(of_transactions(part))
        assert len(seen) == 200 * (number + 1)
        part = shown(made, replace(ALL, limit=200, cursor=part.cursors["transactions"]))
