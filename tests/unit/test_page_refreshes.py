"""The page's refreshes, by its own modules in Node: no answer is sent twice, and a hidden tab asks nothing."""

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

pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node, which runs the page's modules without a browser")


def run(what: str, view: str = "?view=replications") -> Any:
    assert NODE is not None
    harness = Path(__file__).with_name("page_alone.mjs")
    done = subprocess.run([NODE, harness, PAGE, what, view], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_hidden_tab_asks_nothing_and_one_that_is_seen_again_asks_at_once() -> None:
    found = run("refreshes")
    first, seen, hidden, timers, still_hidden, seen_again = found["steps"]
    assert (first, seen) == (1, 2)
    assert (hidden, timers, still_hidden) == (2, 0, 2)
    assert seen_again == 3


def test_a_refresh_names_the_answer_that_the_page_has() -> None:
    assert [one["known"] for one in run("refreshes")["asked"]] == [None, 'W/"one"', 'W/"one"']


@pytest.mark.parametrize("view", ["?view=objects", "?view=streams"])
def test_no_list_waits_for_logs_and_what_is_not_looked_at_is_asked_for_soon(view: str) -> None:
    found = run("looks", view)
    assert len(found["asked"]) == 3
    assert not [one["url"] for one in found["asked"] if "wait" in one["url"]]
    assert found["timers"] == [10_000]
    assert len(run("refreshes", view)["asked"]) == 3  # nothing is missing


def test_a_stream_that_was_left_is_not_drawn_over_what_is_shown_now() -> None:
    assert run("left", "?stream=orders") == "AbortError"


def test_an_argument_that_is_refused_is_named() -> None:
    assert run("refused") == "offset: Input should be at most 10."


def test_an_answer_with_other_ages_is_drawn_again_each_minute_and_not_before() -> None:
    assert run("drawn") == [False, True, False, False]


def test_ages_go_on_where_nothing_else_has_changed() -> None:
    found = run("answers")
    assert found["first"]["rows"][0] == {"lag_seconds": 10, "hours_left": 2}
    assert found["second"] == {
        "now": "2026-11-27T13:00:00Z",
        "rows": [{"lag_seconds": 3610, "hours_left": 1}, {"lag_seconds": 0, "hours_left": None, "name": "a"}],
        "points": [{"lag_seconds": 5}],
    }
    assert found["third"] == found["second"]
