"""R88: a job may die between any two changes of properties, and the next plan still puts all of them back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from tidemark.changes.planning.removals import Removal
from tidemark.model.streams import TableRef
from tidemark.streams.planning.alterations import Settings, alterations, differing
from tidemark.streams.planning.retention import Need, TableFacts, plan_vacuum
from tidemark.streams.planning.staleness import (
    EXTENSION,
    FILE_RETENTION,
    LOG_RETENTION,
    OWN_RETENTION,
    interval,
    retention_of,
)

DAY = timedelta(days=1)
NOW = datetime(2026, 5, 31, tzinfo=UTC)
TABLE = TableRef("t", "file:///t", "id")


def after(configuration: Mapping[str, str], step: Settings) -> dict[str, str]:
    return {name: value for name, value in {**configuration, **step}.items() if value is not None}


def stretched(own: Mapping[str, str]) -> dict[str, str]:
    """A table after a VACUUM that has lengthened both of Delta's properties."""
    needs = [Need("s", 4, NOW + 5 * DAY, NOW - 200 * DAY)]
    facts = TableFacts(TABLE, own, (Removal(5, "f", None, NOW - 6.9 * DAY, 1),))
    made = after(own, plan_vacuum(facts, needs, NOW, extension=60 * DAY).settings)
    assert set(json.loads(made[OWN_RETENTION])) == {FILE_RETENTION, LOG_RETENTION}
    return made


OWN = [
    {name: value for name, value in ((FILE_RETENTION, files), (LOG_RETENTION, log)) if value is not None}
    for files, log in product((None, "interval 5 days"), (None, "interval 40 days"))
]


@pytest.mark.parametrize("own", OWN)
def test_a_job_that_dies_anywhere_leaves_what_the_next_plan_puts_back(own: dict[str, str]) -> None:
    table = stretched(own)
    steps = alterations(table, plan_vacuum(TableFacts(TABLE, table), [], NOW).settings)
    for done in range(len(steps) + 1):
        left = table
        for step in steps[:done]:
            left = after(left, step)
        left = after(left, plan_vacuum(TableFacts(TABLE, left), [], NOW).settings)
        assert {name: value for name, value in left.items() if name != EXTENSION} == own, (done, steps)


@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize("extension", [None, 20 * DAY, 90 * DAY])
@pytest.mark.parametrize("age", [1, 30, 300])
def test_what_is_stretched_is_noted_at_every_moment_and_the_log_is_kept_as_long_as_files(
    own: dict[str, str], extension: timedelta | None, age: int
) -> None:
    """Also where one property is stretched anew while the other is put back, and from a table as it was."""
    for before in (own, stretched(own)):
        facts = TableFacts(TABLE, before, (Removal(5, "f", None, NOW - 6.9 * DAY, 1),))
        needs = [Need("s", 4, NOW + 5 * DAY, NOW - age * DAY)]
        settings = plan_vacuum(facts, needs, NOW, extension=extension).settings
        left = before
        for step in alterations(before, settings):
            assert len({value is None for value in step.values()}) == 1, "Delta sets or unsets in one statement"
            left = after(left, step)
            now, files = retention_of(left), interval(left.get(FILE_RETENTION), 7 * DAY)
            assert (now.files, now.log) == (retention_of(own).files, retention_of(own).log), (before, settings, left)
            assert interval(left.get(LOG_RETENTION), 30 * DAY) >= files
        assert left == after(before, settings)
        assert alterations(left, settings) == ()


def test_one_statement_is_enough_where_all_is_set_or_all_unset() -> None:
    assert len(alterations({}, {FILE_RETENTION: "a", LOG_RETENTION: "b", OWN_RETENTION: "{}"})) == 1
    before = {FILE_RETENTION: "a", LOG_RETENTION: "b", OWN_RETENTION: "{}"}
    assert len(alterations(before, dict.fromkeys(before))) == 1
    mixed = alterations(before, {FILE_RETENTION: None, LOG_RETENTION: "c", OWN_RETENTION: None})
    assert mixed == ({FILE_RETENTION: None}, {LOG_RETENTION: "c"}, {OWN_RETENTION: None})


def test_a_log_that_is_put_back_stays_noted_while_files_are_stretched() -> None:
    note = json.dumps({LOG_RETENTION: {"own": None, "now": "interval 60 days"}})
    new = json.dumps({FILE_RETENTION: {"own": None, "now": "interval 20 days"}})
    before = {LOG_RETENTION: "interval 60 days", OWN_RETENTION: note}
    settings = {FILE_RETENTION: "interval 20 days", LOG_RETENTION: None, OWN_RETENTION: new}
    first, second, last = alterations(before, settings)
    assert set(json.loads(first[OWN_RETENTION] or "")) == {FILE_RETENTION, LOG_RETENTION}
    assert (second, last) == ({LOG_RETENTION: None}, {OWN_RETENTION: new})


def test_a_property_that_is_neither_as_found_nor_as_wanted_was_set_by_somebody() -> None:
    found = {FILE_RETENTION: None, LOG_RETENTION: "a", EXTENSION: None}
    settings = {FILE_RETENTION: "b"}
    assert differing({LOG_RETENTION: "a"}, found, settings) == ()
    assert differing({FILE_RETENTION: "b", LOG_RETENTION: "a"}, found, settings) == ()  # a run was broken off
    assert differing({FILE_RETENTION: "c", EXTENSION: "x"}, found, settings) == (
        FILE_RETENTION,
        LOG_RETENTION,
        EXTENSION,
    )
