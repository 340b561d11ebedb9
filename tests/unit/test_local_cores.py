"""Masters of Spark that run tasks on their own host."""

from __future__ import annotations

import os

import pytest

from tidemark.jobs.settings import local_cores


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        ("local", 1),
        ("local[3]", 3),
        ("local[3,2]", 3),
        ("local[3, 2]", 3),
        ("local-cluster[2,1,1024]", None),
        ("spark://host:7077", None),
        ("k8s://https://host", None),
        ("yarn", None),
        ("", None),
    ],
)
def test_tasks_at_a_time_of_a_master(master: str, cores: int | None) -> None:
    assert local_cores(master) == cores


def test_a_star_is_each_core_of_the_process() -> None:
    cores = local_cores("local[*]")
    assert cores is not None
    assert 1 <= cores <= (os.cpu_count() or 1)
    assert local_cores("local[*,4]") == cores
