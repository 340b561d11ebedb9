"""The page's charts, by its own modules in Node: values that can be told apart, and points that keep their names."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import tidemark

NODE = shutil.which("node")
PAGE = Path(tidemark.__file__).parent / "plugins" / "monitor" / "page"
LETTER = 7  # pixels of a digit

pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node, which runs the page's modules without a browser")


def drawn(offsets: list[int], *, first: int = 0, at: str = "2026-11-27T12:{:02}:{:02}Z") -> Any:
    """A chart of these offsets, the oldest first, a second after one another."""
    assert NODE is not None
    points = [{"at": at.format(*divmod(first + n, 60)), "offset": offset} for n, offset in enumerate(offsets)]
    harness = Path(__file__).with_name("page_charts.mjs")
    words = [NODE, harness, PAGE, json.dumps(points[::-1])]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("low", "high", "label"),
    [
        (24, 29, "26"),
        (150_010, 150_060, "150,020"),
        (1_700_000_000_100, 1_700_000_000_150, "1,700,000,000,120"),
        (100_000, 900_000, "400k"),
        (0, 8_000_000, "4M"),
    ],
)
def test_the_values_of_an_axis_are_told_apart_and_have_room(low: int, high: int, label: str) -> None:
    labels = drawn([low, high])["labels"]
    words = [said for said, _ in labels]
    assert label in words
    assert len(set(words)) == len(words) > 1
    assert all(len(said) * LETTER <= end for said, end in labels)


def test_a_point_keeps_its_name_when_newer_ones_come_and_the_oldest_leaves() -> None:
    before, after = dict(drawn([*range(200)])["marks"]), dict(drawn([*range(1, 201)], first=1)["marks"])
    common = before.keys() & after.keys()
    assert len(common) == 199
    assert {label: before[label] for label in common} == {label: after[label] for label in common}


def test_points_of_one_time_have_names_of_their_own() -> None:
    names = [name for _, name in drawn([1, 2, 3], at="2026-11-27T12:00:00Z")["marks"]]
    assert len(set(names)) == 3
