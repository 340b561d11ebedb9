"""However many names there are, there are no more groups than asked for, and every name is in one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidemark.streams.planning.groups import in_groups


@given(st.lists(st.text(min_size=1), max_size=60), st.integers(1, 12))
def test_every_name_is_in_one_of_at_most_so_many_groups(names: list[str], most: int) -> None:
    groups = in_groups(names, most)
    assert len(groups) <= most or not names
    assert [name for group in groups for name in ([group] if isinstance(group, str) else group)] == names
    assert all(len(group) > 0 for group in groups if isinstance(group, list))


def test_as_many_as_fit_stand_alone() -> None:
    assert in_groups(["a", "b", "c"], 3) == ["a", "b", "c"]
    assert in_groups(["a", "b", "c"], 2) == [["a", "b"], ["c"]]
    assert in_groups([], 5) == []
