"""ON_ERROR decides the fate of each file of a load."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidemark.pipes.model.copying import ErrorMode, OnError
from tidemark.pipes.model.files import FileStatus
from tidemark.pipes.planning.on_error import FileCounts, decide, error_limit

SKIP = ErrorMode.SKIP_FILE
UNREADABLE = "it is cut off"


@st.composite
def files(draw: st.DrawFn) -> list[FileCounts]:
    found = []
    for number in range(draw(st.integers(0, 6))):
        errors, good = draw(st.integers(0, 20)), draw(st.integers(0, 20))
        system_error = draw(st.sampled_from([None, None, None, UNREADABLE]))
        first = "bad" if errors else None
        found.append(FileCounts(f"f{number}", 1, errors + good, good, errors, first, system_error=system_error))
    return found


MODES = st.one_of(
    st.just(OnError()),
    st.just(OnError(ErrorMode.CONTINUE)),
    st.just(OnError(SKIP)),
    st.integers(1, 25).map(lambda limit: OnError(SKIP, limit=limit)),
    st.integers(0, 100).map(lambda percent: OnError(SKIP, percent=float(percent))),
)


@given(files(), MODES)
def test_each_file_has_one_report_with_rows_only_if_it_is_loaded(counts: list[FileCounts], on_error: OnError) -> None:
    reports = decide(counts, on_error)
    assert [one.file for one in reports] == [one.file for one in counts]
    for one, report in zip(counts, reports, strict=True):
        assert report.rows_loaded == (one.rows_good if report.status.has_rows else 0)
        assert (report.rows_parsed, report.errors_seen) == (one.rows_parsed, one.errors)
        assert report.status is not FileStatus.LOADED or (one.errors == 0 and one.system_error is None)
        assert report.status is not FileStatus.PARTIALLY_LOADED or report.rows_loaded > 0
        assert one.system_error is None or not report.status.has_rows


@given(files(), MODES)
def test_a_file_without_errors_is_loaded_unless_another_ends_the_statement(
    counts: list[FileCounts], on_error: OnError
) -> None:
    ends = on_error.mode is ErrorMode.ABORT_STATEMENT and any(one.errors or one.system_error for one in counts)
    for one, report in zip(counts, decide(counts, on_error), strict=True):
        if not one.errors and one.system_error is None:
            assert report.status is (FileStatus.LOAD_SKIPPED if ends else FileStatus.LOADED)


@given(files())
def test_abort_loads_all_files_or_none(counts: list[FileCounts]) -> None:
    statuses = [one.status for one in decide(counts, OnError())]
    bad = [one for one in counts if one.errors or one.system_error is not None]
    assert statuses.count(FileStatus.LOAD_FAILED) == min(len(bad), 1)
    assert (set(statuses) <= {FileStatus.LOADED}) == (not bad)


@given(files(), st.integers(1, 25))
def test_a_higher_limit_never_skips_more_files(counts: list[FileCounts], limit: int) -> None:
    lower = decide(counts, OnError(SKIP, limit=limit))
    higher = decide(counts, OnError(SKIP, limit=limit + 1))
    assert all(b.status.has_rows for a, b in zip(lower, higher, strict=True) if a.status.has_rows)


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 100))
def test_a_percentage_is_exceeded_exactly_from_the_reported_limit_on(rows: int, errors: int, percent: int) -> None:
    limit = error_limit(rows, OnError(SKIP, percent=float(percent)))
    assert limit is not None
    assert (errors >= limit) == (errors * 100 > rows * percent)


def test_limits_are_those_that_the_source_system_reports() -> None:
    assert error_limit(10, OnError()) == 1
    assert error_limit(10, OnError(SKIP)) == 1
    assert error_limit(10, OnError(SKIP, limit=3)) == 3
    assert error_limit(10, OnError(SKIP, percent=10.0)) == 2


def test_a_file_whose_rows_are_all_bad_has_failed_in_continue() -> None:
    (report,) = decide([FileCounts("f", 1, 2, 0, 2)], OnError(ErrorMode.CONTINUE))
    assert report.status is FileStatus.LOAD_FAILED
