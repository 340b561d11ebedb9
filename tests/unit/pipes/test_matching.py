"""Names of files' columns and of a table's: which belong together, and what a file without one is told."""

from __future__ import annotations

import pytest
from pyspark.sql.types import IntegerType, StructField

from tidemark.pipes.driver.matching import matched, mismatch
from tidemark.pipes.model.copying import MatchBy

ID, NAME = StructField("id", IntegerType()), StructField("Name", IntegerType())
EXACT, ANY_CASE = MatchBy.CASE_SENSITIVE, MatchBy.CASE_INSENSITIVE


def test_names_belong_to_columns_in_any_case_or_exactly_and_others_are_ignored() -> None:
    names = ("ID", "id", "name", "more")
    assert matched(names, (ID, NAME), ANY_CASE) == {"id": ("ID", "id"), "Name": ("name",)}
    assert matched(names, (ID, NAME), EXACT) == {"id": ("id",)}


@pytest.mark.parametrize(("names", "how", "said"), [(("ID",), EXACT, "ID"), (("",), ANY_CASE, "no names")])
def test_a_file_without_a_name_of_the_table_is_told_both(names: tuple[str, ...], how: MatchBy, said: str) -> None:
    problem = mismatch(names, (ID, NAME), how)
    assert problem is not None
    assert problem.endswith(f"the file has {said}, the table has id, Name")


def test_of_very_many_names_the_first_are_said() -> None:
    problem = mismatch([f"c{number}" for number in range(5_000)], (ID,), ANY_CASE)
    assert problem is not None
    assert "c19, and 4,980 more, the table has id" in problem


def test_a_file_without_names_or_with_one_of_the_table_is_no_mismatch() -> None:
    assert mismatch((), (ID,), ANY_CASE) is None
    assert mismatch(("x", "ID"), (ID,), ANY_CASE) is None
