"""Which objects have a task each, and which small ones share one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidemark.model.streams import TableRef
from tidemark.replication.model.replication import ObjectName, ObjectState, ReplicatedObject, TableSchema, WriteMode
from tidemark.replication.planning.run_groups import APART, SMALL, TOGETHER, RunGroups, WaitingObject, group_objects


def waiting(number: int, rows: int = 0, state: ObjectState = ObjectState.PENDING, *, due: bool = True) -> WaitingObject:
    target = TableRef("t", "/t", "")
    one = ReplicatedObject(
        f"uid {number}", "r", ObjectName("s", f"t{number:04}"), "", TableSchema(()), WriteMode.MERGE, target, state
    )
    return WaitingObject(one, rows, due)


def names(found: RunGroups) -> list[list[str]]:
    return [[one.name.table for one in group] for group in found.groups]


def test_few_objects_have_a_task_each_of_any_size() -> None:
    found = group_objects([waiting(number, number * SMALL) for number in range(APART)], most=1024)
    assert [len(group) for group in found.groups] == [1] * APART
    assert found.waiting == ()


def test_of_many_the_small_ones_share_a_task_and_large_ones_have_their_own() -> None:
    wanted = [waiting(number, SMALL + 1 if number in (3, 7) else SMALL) for number in range(30)]
    shared, *alone = names(group_objects(wanted, most=1024))
    assert alone == [["t0003"], ["t0007"]]
    assert len(shared) == 28


def test_a_thousand_small_tables_are_one_task() -> None:
    assert [len(group) for group in group_objects([waiting(n) for n in range(1000)], most=1024).groups] == [TOGETHER]
    assert len(group_objects([waiting(n) for n in range(2500)], most=1024).groups) == 3


def test_small_ones_that_failed_share_tasks_with_few_others() -> None:
    failed = [waiting(number, state=ObjectState.FAILED) for number in range(25)]
    assert [len(group) for group in group_objects([*failed, waiting(99)], most=1024).groups] == [1, 10, 10, 5]


def test_one_whose_apply_failed_has_a_task_of_its_own() -> None:
    wanted = [*(waiting(number) for number in range(20)), waiting(20, state=ObjectState.COMPLETED, due=False)]
    assert [len(group) for group in group_objects(wanted, most=1024).groups] == [20, 1]


def test_beyond_the_limit_large_ones_wait_and_small_ones_do_not() -> None:
    wanted = [waiting(number, SMALL * 2 if number < 4 else 0) for number in range(60)]
    found = group_objects(wanted, most=3)
    assert [len(group) for group in found.groups] == [56, 1, 1]
    assert [one.name.table for one in found.waiting] == ["t0002", "t0003"]


@given(
    st.lists(st.tuples(st.integers(0, 3 * SMALL), st.sampled_from(list(ObjectState)), st.booleans()), max_size=80),
    st.integers(0, 12),
)
def test_each_object_is_in_one_group_or_waits_and_the_limit_holds(
    drawn: list[tuple[int, ObjectState, bool]], most: int
) -> None:
    wanted = [waiting(number, rows, state, due=due) for number, (rows, state, due) in enumerate(drawn)]
    found = group_objects(wanted, most=most)
    assert len(found.groups) <= most
    assert all(found.groups)
    placed = [one.uid for group in (*found.groups, found.waiting) for one in group]
    assert sorted(placed) == sorted(one.object.uid for one in wanted)
