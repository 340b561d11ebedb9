"""Broken files are found by reads of halves, however many there are and whether a read names one or not."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tidemark.pipes.planning.halving import Fault, broken_among, halves

FILES = st.lists(st.integers(0, 500), unique=True, max_size=60).map(lambda found: [f"f{n}" for n in found])


class Reads:
    """Reads of files, of which some are broken. `names`: whether a failure names one of them."""

    def __init__(self, broken: set[str], *, names: bool = False) -> None:
        self.broken, self.names, self.count = broken, names, 0

    def __call__(self, files: Sequence[str]) -> Fault | None:
        self.count += 1
        bad = [file for file in files if file in self.broken]
        if not bad:
            return None
        return Fault(f"{bad[-1]} is damaged", bad[-1]) if self.names else Fault("it is damaged")


@given(FILES)
def test_halves_are_all_files_in_order(files: list[str]) -> None:
    parts = halves(files)
    assert [file for part in parts for file in part] == files
    assert all(parts)
    assert max(map(len, parts), default=0) - min(map(len, parts), default=0) <= max(1, len(files) % 2)


@given(FILES, st.data(), st.booleans())
def test_exactly_the_broken_files_are_found(files: list[str], data: st.DataObject, names: bool) -> None:
    broken = set(data.draw(st.lists(st.sampled_from(files), unique=True))) if files else set()
    reads = Reads(broken, names=names)
    assert set(broken_among(files, reads)) == broken
    most = 2 * (1 + len(broken) * (1 + math.ceil(math.log2(max(2, len(files))))))
    assert reads.count <= most


def test_one_of_a_thousand_takes_twenty_reads_and_has_its_reason() -> None:
    reads = Reads({"f700"})
    assert broken_among([f"f{n}" for n in range(1_000)], reads) == {"f700": "it is damaged"}
    assert reads.count <= 20


def test_a_failure_that_has_passed_or_names_another_file_blames_none_that_can_be_read() -> None:
    assert broken_among(["a", "b", "c"], Reads(set())) == {}

    def elsewhere(files: Sequence[str]) -> Fault | None:
        return Fault("it is damaged", "not one of these") if "b" in files else None

    assert broken_among(["a", "b", "c"], elsewhere) == {"b": "it is damaged"}
