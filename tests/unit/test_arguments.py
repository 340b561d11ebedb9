"""Names and choices are taken as a newcomer writes them, in operators and notebooks alike."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.errors import InvalidArgument
from tidemark.model.statements import SchemaEvolution
from tidemark.streams.planning.arguments import evolution_of, names_of


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (None, ()),
        ("", ()),
        ((), ()),
        ("order_id", ("order_id",)),
        ([" id ", "day", "id"], ("id", "day")),
        (iter(["a", "b"]), ("a", "b")),
    ],
)
def test_one_name_or_several_are_names(given: Any, meant: tuple[str, ...]) -> None:
    assert names_of("keys", given) == meant


@pytest.mark.parametrize("given", [1, [1], [""], " ", [None], ["a", " "]])
def test_what_is_no_name_is_refused_by_its_argument(given: Any) -> None:
    with pytest.raises(InvalidArgument, match="it must be a name or a list of names") as refused:
        names_of("keys", given)
    assert refused.value.facts["argument"] == "keys"


def test_columns_that_a_target_lacks_are_added_or_refused_and_nothing_else() -> None:
    assert [evolution_of("fail"), evolution_of("add")] == [SchemaEvolution.FAIL, SchemaEvolution.ADD]
    for given in ("grow", "", "ADD"):
        with pytest.raises(InvalidArgument, match=r"schema_evolution=.*it must be 'fail' or 'add'"):
            evolution_of(given)
