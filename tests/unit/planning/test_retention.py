"""R88: what VACUUM must leave, how long, and what Delta's own properties must be meanwhile."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from tidemark.changes.planning.removals import UNKNOWN, Removal, kept_bytes, removals
from tidemark.model.codec import from_json, to_json
from tidemark.model.streams import TableRef
from tidemark.model.table_log import AddFile, Commit, RemoveFile
from tidemark.streams.planning.retention import Need, TableFacts, VacuumPlan, plan_vacuum
from tidemark.streams.planning.staleness import EXTENSION, FILE_RETENTION, LOG_RETENTION, OWN_RETENTION
from tidemark.streams.planning.vacuum_job import Vacuumed
from tidemark.streams.planning.vacuum_results import result_of

DAY = timedelta(days=1)
NOW = datetime(2026, 5, 31, tzinfo=UTC)
TABLE = TableRef("t", "file:///t", "id")
EXTENDED = {EXTENSION: "interval 14 days"}


def gone(version: int, days: float, size: int = 10) -> Removal:
    """A file that the commit `version` removed that many days ago."""
    return Removal(version, f"f{version}", None, NOW - days * DAY, size)


def need(stream: str, offset: int, *, days_left: float, offset_days: float = 1) -> Need:
    return Need(stream, offset, NOW + days_left * DAY, NOW - offset_days * DAY)


def facts(*removed: Removal, shortest: timedelta = 7 * DAY, **said: str) -> TableFacts:
    return TableFacts(
        TABLE, {**EXTENDED, **{name.replace("__", "."): value for name, value in said.items()}}, removed, shortest
    )


def test_without_streams_the_table_keeps_what_it_says() -> None:
    plan = plan_vacuum(facts(gone(3, 20)), [], NOW)
    found = {name: EXTENDED.get(name) for name in (EXTENSION, FILE_RETENTION, LOG_RETENTION, OWN_RETENTION)}
    assert plan == VacuumPlan(TABLE, NOW, retain_hours=168, found=found)


def test_no_less_is_kept_than_the_oldest_live_offset_needs() -> None:
    """The horizon is the first removal behind the offset, and it may lie before that commit's own time."""
    needs = [need("slow", 4, days_left=3), need("fast", 8, days_left=13)]
    plan = plan_vacuum(facts(gone(4, 12), gone(5, 10), gone(8, 2), gone(9, 1)), needs, NOW, stretch=False)
    assert (plan.retain_hours, plan.keep_after, plan.by_list) == (241, 4, True)
    assert [(one.stream, one.bytes) for one in plan.held_by] == [("slow", 10)]
    assert (plan.kept.bytes, plan.kept.bytes_past_retention, plan.losing) == (30, 10, ())


def test_a_stream_past_its_limit_holds_nothing_and_what_it_loses_is_said() -> None:
    """What another stream keeps is not lost yet."""
    removed = (gone(3, 20), gone(4, 18, size=5), gone(6, 10), gone(9, 1))
    needs = [need("late", 2, days_left=-0.1), need("good", 5, days_left=2)]
    plan = plan_vacuum(facts(*removed), needs, NOW)
    (losing,) = plan.losing
    assert (losing.stream, losing.version, losing.files, losing.bytes) == ("late", 3, 2, 15)
    assert plan.keep_after == 5
    alone = plan_vacuum(facts(*removed), needs[:1], NOW)
    assert (alone.keep_after, alone.retain_hours, alone.losing[0].files) == (None, 168, 3)


def test_a_young_removal_needs_no_list_unless_the_retention_was_shorter_meanwhile() -> None:
    needs = [need("s", 4, days_left=9)]
    assert not plan_vacuum(facts(gone(5, 3)), needs, NOW).by_list
    assert plan_vacuum(facts(gone(5, 3), shortest=2 * DAY), needs, NOW).by_list


def test_a_removal_without_a_time_is_kept_by_list_and_stretches_nothing() -> None:
    plan = plan_vacuum(facts(Removal(5, "f", None, UNKNOWN, 1)), [need("s", 4, days_left=9)], NOW)
    assert (plan.by_list, plan.retain_hours, plan.settings) == (True, 168, {})


def test_a_table_that_keeps_nothing_keeps_an_hour_for_live_streams() -> None:
    """A commit may come between plan and VACUUM."""
    said = {"delta__deletedFileRetentionDuration": "interval 0 hours"}
    assert plan_vacuum(facts(**said), [], NOW).retain_hours == 0
    assert plan_vacuum(facts(**said), [need("s", 4, days_left=1)], NOW, stretch=False).retain_hours == 1


def test_delta_is_told_once_before_it_would_forget_and_the_log_is_never_shorter_than_files() -> None:
    needs = [need("s", 4, days_left=8)]
    assert plan_vacuum(facts(gone(5, 5.9)), needs, NOW).settings == {}
    short_log = {"delta__logRetentionDuration": "interval 8 days"}
    plan = plan_vacuum(facts(gone(5, 6.1), **short_log), needs, NOW)
    note = {
        FILE_RETENTION: {"own": None, "now": "interval 14 days"},
        LOG_RETENTION: {"own": "interval 8 days", "now": "interval 14 days"},
    }
    assert {name: value for name, value in plan.settings.items() if name != OWN_RETENTION} == {
        FILE_RETENTION: "interval 14 days",
        LOG_RETENTION: "interval 14 days",
    }
    assert json.loads(plan.settings[OWN_RETENTION] or "") == note
    assert plan.retain_hours == 14 * 24

    stretched = {**EXTENDED, **{name: value for name, value in plan.settings.items() if value is not None}}
    again = plan_vacuum(TableFacts(TABLE, stretched, (gone(5, 9),), 7 * DAY), needs, NOW)
    assert (again.settings, again.retain_hours) == ({}, 14 * 24)
    back = plan_vacuum(TableFacts(TABLE, stretched, (gone(5, 9),), 7 * DAY), [need("s", 5, days_left=14)], NOW)
    assert back.settings == {FILE_RETENTION: None, LOG_RETENTION: "interval 8 days", OWN_RETENTION: None}
    assert back.retain_hours == 168


def test_a_quiet_table_with_an_old_offset_keeps_its_log_and_is_not_told_daily() -> None:
    first = plan_vacuum(facts(), [need("s", 4, days_left=14, offset_days=29.5)], NOW)
    assert first.settings[LOG_RETENTION] == "interval 74 days"
    assert FILE_RETENTION not in first.settings
    stretched = {**EXTENDED, **{name: value for name, value in first.settings.items() if value is not None}}
    later = plan_vacuum(TableFacts(TABLE, stretched), [need("s", 4, days_left=14, offset_days=50)], NOW)
    assert later.settings == {}


def test_without_stretching_what_was_stretched_is_put_back_even_while_a_stream_needs_it() -> None:
    """Our own VACUUM keeps it by its horizon and by list."""
    note = json.dumps({FILE_RETENTION: {"own": None, "now": "interval 14 days"}})
    said = {**EXTENDED, FILE_RETENTION: "interval 14 days", OWN_RETENTION: note}
    plan = plan_vacuum(TableFacts(TABLE, said, (gone(5, 9),), 7 * DAY), [need("s", 4, days_left=5)], NOW, stretch=False)
    assert plan.settings == {FILE_RETENTION: None, OWN_RETENTION: None}
    assert (plan.retain_hours, plan.keep_after, plan.by_list) == (217, 4, True)


def test_what_streams_need_is_counted_back_from_the_plan_however_late_the_job_starts() -> None:
    """With two hours of retention, a file that is removed before the plan must outlive a queue of 75 minutes."""
    short = {"delta__deletedFileRetentionDuration": "interval 2 hours"}
    plan = plan_vacuum(facts(gone(5, 50 / 1440), **short), [need("s", 4, days_left=9)], NOW, stretch=False)
    late = NOW + timedelta(minutes=75)
    assert (plan.retain_hours, plan.retain_hours_at(NOW)) == (2, 2)
    assert late - plan.retain_hours_at(late) * timedelta(hours=1) < NOW - timedelta(minutes=50)
    assert plan.retain_hours_at(NOW - timedelta(hours=5)) == 2  # the job's clock is behind
    assert (plan.keep_after, plan.by_list) == (4, True)
    nobody = plan_vacuum(facts(gone(5, 50 / 1440), **short), [], NOW)
    assert (nobody.retain_hours_at(late), nobody.keep_after, nobody.by_list) == (2, None, False)


def test_what_is_removed_after_the_plan_is_kept_for_a_stream_that_is_held() -> None:
    held = [need("s", 4, days_left=9)]
    assert (plan_vacuum(facts(), held, NOW).keep_after, plan_vacuum(facts(), held, NOW).by_list) == (4, False)
    short = {"delta__deletedFileRetentionDuration": "interval 2 hours"}
    plan = plan_vacuum(facts(**short), held, NOW, stretch=False)
    assert (plan.keep_after, plan.by_list, plan.retain_hours_at(NOW + timedelta(hours=9.5))) == (4, True, 11)


def test_what_somebody_has_set_meanwhile_is_theirs() -> None:
    note = json.dumps({FILE_RETENTION: {"own": None, "now": "interval 14 days"}})
    said = {**EXTENDED, FILE_RETENTION: "interval 3 days", OWN_RETENTION: note}
    assert plan_vacuum(TableFacts(TABLE, said), [], NOW).settings == {OWN_RETENTION: None}


def test_the_extension_is_noted_where_it_is_another() -> None:
    assert plan_vacuum(facts(), [], NOW, extension=14 * DAY).settings == {}
    assert plan_vacuum(facts(), [], NOW, extension=90 * DAY).settings == {EXTENSION: "interval 90 days"}


def test_removals_are_net_and_a_data_file_that_is_live_under_another_vector_is_not_kept_for_streams() -> None:
    commits = [
        _commit(5, removed=[("a", 5), ("b", 6)], added=[("b", 6)]),
        _commit(6, removed=[("c", 7)]),
        _commit(7, added=[("c", 7)]),
    ]
    found = removals(commits)
    assert [(one.version, one.path, one.whole) for one in found] == [(5, "a", True)]
    kept = kept_bytes(found, 7 * DAY, NOW)
    assert (kept.files, kept.bytes, kept.bytes_past_retention) == (1, 5, 5)


def test_a_plan_travels_as_json_and_is_told_in_words() -> None:
    plan = plan_vacuum(facts(gone(5, 10)), [need("s", 4, days_left=3), need("x", 1, days_left=-1)], NOW)
    assert from_json(VacuumPlan, to_json(plan)) == plan
    told = str(result_of(plan, Vacuumed(3, 1234), dry_run=True))
    assert (
        told
        == "VACUUM of t would remove 3 files of 1,234 bytes; 10 bytes stay for streams, 10 of them for streams alone."
    )


def test_settings_that_are_skipped_are_not_said_to_be_set() -> None:
    plan = plan_vacuum(facts(), [], NOW, extension=90 * DAY)
    skipped = result_of(plan, Vacuumed(3, 4, (FILE_RETENTION,)), dry_run=False)
    assert (skipped.settings, skipped.changed_meanwhile) == ({}, (FILE_RETENTION,))


def _commit(version: int, removed: list[tuple[str, int]] = [], added: list[tuple[str, int]] = []) -> Commit:  # noqa: B006
    return Commit(
        version=version,
        timestamp=NOW,
        operation="MERGE",
        adds=tuple(AddFile(path, size, {}, 0, True, None, None, 0, 0) for path, size in added),
        removes=tuple(RemoveFile(path, True, 0, size, {}, None, None, 0, 0) for path, size in removed),
        metadata=None,
        protocol=None,
        row_id_high_water_mark=None,
        user_metadata=None,
    )
