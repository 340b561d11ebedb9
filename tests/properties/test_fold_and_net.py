"""Whatever happened to a table, the planned files net to the difference of its ends: synthetic logs, no Spark."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.properties.synthetic_log import (
    METADATA,
    Live,
    Row,
    SyntheticTable,
    difference,
    net,
    signed_rows,
    without_carried,
)
from tests.tiers import some
from tidemark.changes.planning.sets.folds import (
    brings_rows_back,
    choose,
    fold_births,
    fold_commit,
    fold_data_changes,
    fold_feed,
    fold_states,
)

Step = tuple[int, int, int]  # which operation, and two numbers that say where
EXAMPLES = 600  # for each turn of a test

turns = pytest.mark.parametrize("turn", some(range(4), now=(0,)))
steps = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 1000), st.integers(0, 3)), min_size=4, max_size=12)
windows = st.tuples(st.integers(0, 1000), st.integers(0, 1000))
quick = settings(
    max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)


def _insert(table: SyntheticTable, where: int, value: int) -> None:
    table.commit([], [table.write([value, value + 1][: 1 + where % 2])])


def _victims(table: SyntheticTable, where: int) -> list[tuple[Live, set[int]]]:
    """A few live rows of some files, as positions."""
    chosen = []
    for number, live in enumerate(sorted(table.versions[-1], key=lambda live: live.path)):
        gone = table.vectors.get(live.vector or "", frozenset())
        positions = [n for n in range(len(table.files[live.path])) if n not in gone and (where + n + number) % 3 == 0]
        if positions:
            chosen.append((live, set(positions)))
    return chosen


def _change_with_vectors(table: SyntheticTable, where: int, value: int, *, update: bool, insert: bool = False) -> None:
    victims = _victims(table, where)
    rows = [table.files[live.path][n] for live, positions in victims for n in positions]
    new = [Row(row.row_id, 0, value) for row in rows] if update else []
    written = [table.write([value] if insert else [], updated=new)] if new or insert else []
    emptied = [live for live, positions in victims if len(table.rows(live)) == len(positions)]
    kept = [table.without(live, positions) for live, positions in victims if live not in emptied]
    if victims or written:
        table.commit([live for live, _ in victims], [*kept, *written], operation="MERGE", with_feed=_feeds(where))


def _change_by_copy(table: SyntheticTable, where: int, value: int, *, update: bool, insert: bool = False) -> None:
    victims = _victims(table, where)
    written = []
    for live, positions in victims:
        hit = [row for n, row in enumerate(table.files[live.path]) if n in positions]
        carried = [row for row in table.rows(live) if row not in hit]
        new = [Row(row.row_id, 0, value) for row in hit] if update else []
        if carried or new:
            written.append(table.write([value] if insert else [], carried, new))
    if victims:
        table.commit([live for live, _ in victims], written, operation="MERGE", with_feed=_feeds(where))


def _feeds(where: int) -> bool:
    """Some commits have change files, as if the feed had been switched on and off."""
    return where % 5 < 2


def _optimize(table: SyntheticTable, where: int, value: int) -> None:
    live = sorted(table.versions[-1], key=lambda live: live.path)[where % 2 :]
    rows = [row for file in live for row in table.rows(file)]
    if live:
        table.commit(live, [table.write([], rows)] if rows else [], data_change=False, operation="OPTIMIZE")


def _restore(table: SyntheticTable, where: int, value: int) -> None:
    target = table.versions[where % len(table.versions)]
    current = table.versions[-1]
    table.commit(current - target, target - current)


def _overwrite(table: SyntheticTable, where: int, value: int) -> None:
    table.commit(table.versions[-1], [table.write([value])] if where % 3 else [])


def _say_again(table: SyntheticTable, where: int, value: int) -> None:
    """New statistics for files that are live already."""
    table.commit([], sorted(table.versions[-1], key=lambda live: live.path)[: 1 + where % 2], data_change=False)


OPERATIONS: tuple[Callable[[SyntheticTable, int, int], None], ...] = (
    _insert,
    _insert,
    lambda table, where, value: _change_with_vectors(table, where, value, update=False),
    lambda table, where, value: _change_with_vectors(table, where, value, update=True),
    lambda table, where, value: _change_with_vectors(table, where, value, update=True, insert=True),
    lambda table, where, value: _change_by_copy(table, where, value, update=False),
    lambda table, where, value: _change_by_copy(table, where, value, update=True, insert=where % 2 == 0),
    _optimize,
    _restore,
    _overwrite,
    _say_again,
)


def build(history: list[Step]) -> SyntheticTable:
    table = SyntheticTable()
    for operation, where, value in [(0, 1, 0), (0, 1, 1), *history]:
        table.begin()
        OPERATIONS[operation](table, where, value)
    return table


def ends(table: SyntheticTable, window: tuple[int, int]) -> tuple[int, int]:
    start, end = sorted(point % (table.version + 1) for point in window)
    return start, end


def contents(table: SyntheticTable, version: int) -> dict[int, int]:
    return {row_id: row.content for row_id, row in table.snapshot(version).items()}


@turns
@quick
@example(
    history=[(7, 0, 0), (8, 2, 0)], window=(0, 4)
)  # compacted, then restored: without the rewrite each file is added twice
@example(
    history=[(7, 0, 0), (7, 0, 0), (9, 0, 0), (8, 3, 0)], window=(2, 6)
)  # a compacted file is restored: its rows are old
@given(history=steps, window=windows)
def test_every_fold_nets_to_the_difference_of_the_ends(turn: int, history: list[Step], window: tuple[int, int]) -> None:
    table = build(history)
    start, end = ends(table, window)
    commits, mark = table.commits[start:end], table.marks[start]
    truth = difference(contents(table, start), contents(table, end))

    states = fold_states(commits, METADATA, mark)
    assert states.sound
    rows = signed_rows(table, states)
    assert net(rows) == truth
    if not brings_rows_back(commits, mark):
        assert net(without_carried(rows, start)) == truth
    assert net(signed_rows(table, fold_data_changes(commits, METADATA, mark))) == truth
    assert net(signed_rows(table, fold_feed(commits, METADATA, mark))) == truth
    chosen = choose(commits, METADATA, mark, feed=True)
    assert chosen.sound
    assert chosen.cost <= states.cost
    assert not choose(commits, METADATA, mark, feed=False).feed


@turns
@quick
@given(history=steps)
def test_every_commit_by_itself_is_the_difference_that_it_made(turn: int, history: list[Step]) -> None:
    table = build(history)
    for version, commit in enumerate(table.commits, start=1):
        mark = table.marks[version - 1]
        truth = difference(contents(table, version - 1), contents(table, version))
        for feed in (True, False):
            assert net(signed_rows(table, fold_commit(commit, METADATA, mark, feed=feed))) == truth


@turns
@quick
@given(history=steps, window=windows)
def test_files_of_born_rows_have_no_other(turn: int, history: list[Step], window: tuple[int, int]) -> None:
    table = build(history)
    start, end = ends(table, window)
    fold = fold_states(table.commits[start:end], METADATA, table.marks[start])
    for change in fold.changes:
        if change.all_born:
            assert all(row.row_id > table.marks[start] for row in table.files[change.path])


@turns
@quick
@given(history=steps, window=windows)
def test_births_are_each_inserted_row_once_as_it_was_inserted(
    turn: int, history: list[Step], window: tuple[int, int]
) -> None:
    table = build(history)
    start, end = ends(table, window)
    fold = fold_births(table.commits[start:end], METADATA, table.marks[start])
    truth = sorted(
        (row.row_id, row.content) for version in range(start + 1, end + 1) for row in table.inserted.get(version, ())
    )
    found = sorted(
        (row.row_id, row.content)
        for form in fold.births
        for row in table.of(form)
        if row.row_id >= table.base[form.path] and row.row_id > table.marks[start]
    )
    assert found == truth
