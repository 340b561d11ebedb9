"""The lives of a row under several keys lead back to its first one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidemark.replication.driver.lineages import KeyMove, roots_of


def test_a_row_that_moved_on_and_on_has_the_root_of_its_first_move() -> None:
    first = KeyMove(("b", "01", 2), ("a", None, None))
    second = KeyMove(("c", "02", 2), ("b", "01", 2))
    back = KeyMove(("a", "03", 2), ("c", "02", 2))
    assert roots_of([back, first, second]) == dict.fromkeys([first.began, second.began, back.began], ("a", None, None))


def test_a_key_that_was_left_and_taken_again_is_another_row() -> None:
    moved = KeyMove(("b", "02", 2), ("a", None, None))
    inserted = ("a", "03", 1)
    again = KeyMove(("c", "04", 2), inserted)
    assert roots_of([moved, again]) == {moved.began: ("a", None, None), again.began: inserted}


@given(st.permutations(range(30)))
def test_the_order_in_which_moves_are_told_does_not_count(order: list[int]) -> None:
    lives = [("k0", None, None), *((f"k{n}", f"{n:04d}", 2) for n in range(1, 31))]
    moves = [KeyMove(lives[n + 1], lives[n]) for n in order]
    assert set(roots_of(moves).values()) == {lives[0]}
