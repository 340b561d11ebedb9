"""Which tests `make test` runs, and which wait for `make test-all`; each test is in exactly one of the two.

A test is in `make test` unless it is marked `nightly`. The mark says why it waits, and which test of `make test` proves
the same promise with less; a promise without such a test is listed in provider/docs/how-to/develop.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import LATER, REASON, RUN_NOW

__all__ = ["ALL_TIERS", "LONG", "is_quick", "nightly", "selected", "some", "some_rows", "tier_of", "wait_of"]

ALL_TIERS: pytest.StashKey[list[dict[str, Any]]] = pytest.StashKey()  # of every test that was collected
QUICK = ("unit", "control", "architecture")  # folders whose tests belong to `make test-quick`, but for PostgreSQL
LONG = (
    "tests/architecture/test_docs.py::test_the_site_builds_without_a_warning_and_its_navigation_has_the_four_kinds",
    "tests/architecture/test_layers.py::test_each_side_can_be_imported_without_the_packages_of_the_other",
    "tests/architecture/test_tiers.py",
    "tests/architecture/test_wheel.py",
    "tests/control/test_migrations.py",
    "tests/control/test_objects_of_an_earlier_release.py",
    "tests/control/test_pruning.py",
    "tests/control/test_reading_chunks.py",
    "tests/control/test_replicated_objects.py",
    "tests/control/test_replications_at_random.py",
    "tests/control/test_stream_transfer.py",
    "tests/control/test_waves_behaviour.py",
    "tests/unit/channels/test_batches.py::test_a_column_of_arrow_equals_the_rules_value_by_value",
    "tests/unit/channels/test_batches.py::test_a_column_of_python_values_equals_the_rules_value_by_value",
    "tests/unit/channels/test_sources.py::test_a_next_cursor_that_is_neither_a_text_nor_a_number_is_an_error",
    "tests/unit/channels/test_sources.py::test_a_page_whose_next_cursor_says_nothing_is_the_last_one",
    "tests/unit/channels/test_sources.py::test_a_token_that_is_no_place_in_a_page_is_refused",
    "tests/unit/channels/test_sources.py::test_an_api_that_refuses_or_answers_something_else_is_an_error",
    "tests/unit/lake/test_corrupt_logs.py",
    "tests/unit/lake/test_file_listing.py",
    "tests/unit/lake/test_log_tails.py",
    "tests/unit/lake/test_object_store_logs.py",
    "tests/unit/planning/test_groups.py",
    "tests/unit/triggers/test_pipe_triggers.py",
    "tests/unit/triggers/test_waiting.py",
    "tests/unit/triggers/test_watchers.py",
    "tests/unit/warm_spark/test_warm_servers.py",
)  # except these, which wait for a clock or a server, and take a third of the time of all of them


def nightly(reason: str, proven_by: str | None = None) -> pytest.MarkDecorator:
    """Leaves a test to `make test-all`; `proven_by` is `file::test` of a shorter proof of the same promise."""
    return pytest.mark.nightly(reason=reason, proven_by=proven_by)


def some(values: Iterable[Any], now: Collection[Any], reason: str = "the other values of one test") -> list[Any]:
    """Parameters of a test: those in `now` are run by `make test`, the others by `make test-all`."""
    return [value if value in now else pytest.param(value, marks=nightly(reason)) for value in values]


def some_rows(rows: Iterable[tuple[Any, ...]], now: Collection[tuple[Any, ...]]) -> list[Any]:
    """The same for parameters of several names."""
    return [row if row in now else pytest.param(*row, marks=nightly("the other values of one test")) for row in rows]


def selected(request: pytest.FixtureRequest, name: str) -> list[Any]:
    """Values of the parameter `name` in this file's tests of this run, in order: what a fixture need prepare."""
    return list(
        dict.fromkeys(
            item.callspec.params[name]
            for item in request.session.items
            if isinstance(item, pytest.Function) and item.path == request.path and hasattr(item, "callspec")
            if name in item.callspec.params
        )
    )


def wait_of(item: pytest.Item) -> pytest.MarkDecorator | None:
    """The mark of a test that tests/waiting.py leaves to `make test-all`; None if it is not named there."""
    file, _, test = item.nodeid.partition("::")
    names = (test, test.partition("[")[0])
    for name in names:
        if name in LATER.get(file, {}):
            return nightly(REASON, LATER[file][name])
    return nightly(REASON) if file in RUN_NOW and not set(names) & set(RUN_NOW[file]) else None


def is_quick(item: pytest.Item) -> bool:
    """Whether a test belongs to `make test-quick`: it is marked so, or needs neither Spark nor a server."""
    if item.get_closest_marker("nightly") or item.nodeid.startswith(LONG):
        return False
    needed = getattr(item, "fixturenames", ())
    folder = item.path.relative_to(Path(__file__).parent).parts[0]
    served = "postgresql" in item.nodeid or "postgresql" in needed or "source_server" in needed
    return bool(item.get_closest_marker("quick")) or (folder in QUICK and not served and "spark" not in needed)


def tier_of(item: pytest.Item) -> dict[str, Any]:
    """The facts of a test for the check of tiers: `id`, `quick`, `nightly`, and that mark's arguments."""
    marks, quick = list(item.iter_markers("nightly")), item.get_closest_marker("quick")
    mark = next((mark for mark in marks if mark.kwargs["proven_by"]), marks[0] if marks else None)
    return {"id": item.nodeid, "quick": quick is not None, "nightly": mark is not None, **(mark.kwargs if mark else {})}
