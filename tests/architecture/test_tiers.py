"""Every test is in one of `make test` and `make test-all`, and nothing that only the latter proves goes unsaid."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.rooms import ROOMS
from tests.tiers import ALL_TIERS, LONG
from tests.waiting import LATER, RUN_NOW

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "provider" / "docs" / "how-to" / "develop.md"

ELSEWHERE = {
    "changes": "tests/engine/test_standard_rows.py",
    "delivery": "tests/engine/test_merge_write.py",
    "results": "tests/engine/test_result_cache.py",
    "streams": "tests/engine/test_client_streams.py",
}
"""The tests with Spark of subjects that have no folder of their name in tests/engine."""


@pytest.fixture(scope="module")
def tiers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """All tests of the project; a run of some of them collects the others apart."""
    if {Path(argument).resolve() for argument in request.config.args} == {ROOT / "tests"}:
        return request.config.stash[ALL_TIERS]
    file = tmp_path_factory.mktemp("tiers") / "tiers.json"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-p",
        "no:cacheprovider",
        "--tiers-to",
        str(file),
    ]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    found: list[dict[str, Any]] = json.loads(file.read_text())
    return found


def function_of(nodeid: str) -> str:
    return nodeid.partition("[")[0]


def proof_of(test: dict[str, Any]) -> str:
    """`file::test` of the shorter proof that a mark names; one of the same file is named by its name alone."""
    named: str = test["proven_by"]
    return named if "::" in named else f"{test['id'].partition('::')[0]}::{named}"


def test_the_two_targets_select_by_one_mark() -> None:
    commands = {
        target: subprocess.run(
            ["make", "-n", *target.split()], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        for target in ("test", "test-all SHARD=2/5")
    }
    assert re.findall(r"-m (?!pytest)(\".*?\"|\S+)", commands["test"]) == ['"not nightly"']
    assert "-m nightly --splits 5 --group 2 " in commands["test-all SHARD=2/5"]


def test_no_test_is_chosen_by_the_clock_or_the_environment() -> None:
    """What an environment chooses is in neither tier for sure."""
    chosen = re.compile(r"pytest\.skip\(.*environ|skipif\([^)]*environ|range\([^)]*environ|time\.time\(\) >.*\n.*skip")
    files = [file for file in (ROOT / "tests").rglob("*.py") if file != Path(__file__)]
    assert [str(file) for file in files if chosen.search(file.read_text(encoding="utf-8"))] == []


def test_each_mark_says_why_and_names_a_proof_that_make_test_runs(tiers: list[dict[str, Any]]) -> None:
    now = {function_of(test["id"]) for test in tiers if not test["nightly"]}
    now |= {name.rpartition("::")[0] for name in now if name.count("::") == 2}  # a class of tests is a proof, too
    waiting = [test for test in tiers if test["nightly"]]
    assert [test["id"] for test in waiting if not test["reason"]] == []
    assert [test for test in waiting if test["proven_by"] and proof_of(test) not in now] == []


def test_what_make_test_quick_runs_make_test_runs(tiers: list[dict[str, Any]]) -> None:
    assert [test["id"] for test in tiers if test["quick"] and test["nightly"]] == []


def test_make_test_quick_collects_every_quick_test(tiers: list[dict[str, Any]]) -> None:
    command = subprocess.run(["make", "-n", "test-quick"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    collected = tuple(command.split("-m quick ")[1].split())
    assert [test["id"] for test in tiers if test["quick"] and not test["id"].startswith(collected)] == []


def test_each_subject_with_a_driver_has_a_quick_test_with_spark(tiers: list[dict[str, Any]]) -> None:
    places = {room: ELSEWHERE.get(room, f"tests/engine/{room}/") for room, words in ROOMS.items() if "driver" in words}
    quick = [test["id"] for test in tiers if test["quick"]]
    assert [room for room, place in places.items() if not any(one.startswith(place) for one in quick)] == []


def test_names_of_long_tests_are_those_of_tests(tiers: list[dict[str, Any]]) -> None:
    assert [name for name in LONG if not any(test["id"].startswith(name) for test in tiers)] == []


def test_tests_that_stand_for_a_file_are_in_it(tiers: list[dict[str, Any]]) -> None:
    there = {name for test in tiers if not test["nightly"] for name in (test["id"], function_of(test["id"]))}
    assert [name for file, names in RUN_NOW.items() for name in names if f"{file}::{name}" not in there] == []


def test_tests_that_wait_alone_are_there(tiers: list[dict[str, Any]]) -> None:
    there = {name for test in tiers if test["nightly"] for name in (test["id"], function_of(test["id"]))}
    assert [name for file, names in LATER.items() for name in names if f"{file}::{name}" not in there] == []


def test_promises_that_only_test_all_proves_are_listed(tiers: list[dict[str, Any]]) -> None:
    now = {function_of(test["id"]) for test in tiers if not test["nightly"]}
    alone = {function_of(test["id"]) for test in tiers if test["nightly"] and not test["proven_by"]} - now
    alone = {test.partition("::")[0] if test.partition("::")[0] in RUN_NOW else test for test in alone}
    assert {name for table in tables_of_promises() for name in table} == alone


def test_the_tables_of_promises_are_ordered_and_name_each_test_once_under_its_head() -> None:
    some_run, none_run = tables_of_promises()
    assert (some_run, none_run) == (sorted(set(some_run)), sorted(set(none_run)))
    assert [name for name in some_run if not RUN_NOW.get(name)] == []
    assert [name for name in none_run if RUN_NOW.get(name)] == []


def tables_of_promises() -> tuple[list[str], list[str]]:
    """On the page: files of which `make test` runs some tests, then those files and tests that wait as a whole."""
    text = PAGE.read_text(encoding="utf-8").partition("## Promises that only `make test-all` proves")[2]
    first, _, second = text.partition("| test | reason for waiting |")
    some_run, none_run = (re.findall(r"^\| `(tests/\S+)` \|", part, re.MULTILINE) for part in (first, second))
    return some_run, none_run
