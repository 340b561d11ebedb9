"""Telling Airflow about a commit: outlet events, the return value, a line in the log (PROTOCOL step 16)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias
from airflow.sdk.exceptions import AirflowSkipException

from tidemark import metrics
from tidemark.assets import stream_asset
from tidemark.delivery.model.transactions import CommitResult, DeliveredWindow
from tidemark.errors import StreamNotFound, TidemarkError
from tidemark.failpoints import failpoint

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

    from tidemark.control.store import ControlStore
    from tidemark.hooks.tidemark import TidemarkHook

__all__ = ["announce", "default_outlets", "facts_of", "is_empty", "taken_over", "tell_lag", "warn_of_quarantine"]

log = logging.getLogger(__name__)


def default_outlets(streams: object) -> list[Asset]:
    """The asset of each stream whose name is written out; a templated name has none: assets are known at parse time."""
    names = [streams] if isinstance(streams, str) else streams if isinstance(streams, list | tuple) else []
    return [stream_asset(name) for name in names if isinstance(name, str) and "{{" not in name]


def announce(
    context: Context,
    operator: BaseOperator,
    result: CommitResult,
    *,
    finished: Sequence[CommitResult] = (),
    fresh: bool = True,
    skip_when_empty: bool = False,
    found_now: bool = False,
) -> dict[str, Any]:
    """Attach the stored result to every outlet's event; the answer is the task's return value.

    Airflow stores the event together with the task's success. Run again for the same result it says the same again:
    events are hints (step 16). `finished` are others' transactions that were taken over on the way: the event names
    them too (I10). `fresh`: this attempt committed it, so it counts in the metrics. `found_now`: an earlier
    task of this attempt at the run found that nothing is new. Raises AirflowSkipException, so that there is no event,
    where nothing was delivered and `skip_when_empty` asks for it.
    """
    for earlier in finished:
        log.warning("Finished transaction %s, whose lease had run out: %s", earlier.key, facts_of(earlier))
    _say(result, None if found_now and is_empty(result) else context["ti"].start_date)
    warn_of_quarantine(result.quarantined, getattr(operator, "quarantine", None))
    if fresh:
        metrics.delivered(result)
        metrics.taken_over(finished)
    if skip_when_empty and is_empty(result) and not finished:
        raise AirflowSkipException("Nothing new to deliver.")
    failpoint("event.before")
    more: dict[str, Any] = {"taken_over": [facts_of(earlier) for earlier in finished]} if finished else {}
    events = context["outlet_events"]
    for outlet in operator.outlets:
        if isinstance(outlet, Asset):
            events[outlet].extra = {**_extra(outlet, result), **more}
        elif isinstance(outlet, AssetAlias):
            for window in result.windows:
                events[outlet].add(stream_asset(window.stream), extra={**_facts(window, result), **more})
    failpoint("event.after")
    return facts_of(result)


def taken_over(store: ControlStore, result: CommitResult) -> tuple[CommitResult, ...]:
    """Results of others' transactions on the same streams that were finished under this key on the way (step 4)."""
    from tidemark.streams.worker.streams import stream_transactions

    found: dict[str, CommitResult] = {}
    for window in result.windows:
        with suppress(StreamNotFound):  # dropped since
            for other in stream_transactions(store, window.stream):
                if other.superseded_by == result.key and other.result is not None:
                    found[str(other.key)] = other.result
    return tuple(found.values())


def tell_lag(hook: TidemarkHook, result: CommitResult) -> None:
    """Report to the metrics how many versions each source is ahead, if anybody listens. An unreachable lake is no
    failure.
    """
    if not metrics.wanted():
        return
    from tidemark.streams.worker.streams import get_stream

    store = hook.open_store()
    for window in result.windows:
        with suppress(TidemarkError):
            bases = get_stream(store, window.stream).bases
            head = sum(hook.open_table(base.table).head() for base in bases)
            metrics.lag_in_versions(window.stream, head - window.to_version)


def facts_of(result: CommitResult) -> dict[str, Any]:
    """The delivery in plain values: {stream, from, to, initial_rows, rows, quarantined, serial, lag, committed_at}.

    `lag` in seconds. Several streams: {windows: [the same for each], rows, quarantined, serial, committed_at}.
    """
    if len(result.windows) == 1:
        return _facts(result.windows[0], result)
    return {
        "windows": [_facts(window, result) for window in result.windows],
        "rows": result.rows,
        "quarantined": result.quarantined,
        "serial": result.serial,
        "committed_at": result.committed_at.isoformat(),
    }


def is_empty(result: CommitResult) -> bool:
    """Whether there was nothing to deliver: no statement ran, though offsets may have passed idle versions."""
    return not result.evidence


def warn_of_quarantine(rows: int, table: str | None) -> None:
    """One line in the task's log, as long as there are any."""
    if rows:
        log.warning("%s rows broke a constraint of the target and are in quarantine: %s", rows, table or "see the plan")


def _extra(outlet: Asset, result: CommitResult) -> dict[str, Any]:
    """A stream's own asset hears of its own window, any other outlet of all."""
    for window in result.windows:
        if outlet.uri == stream_asset(window.stream).uri:
            return _facts(window, result)
    return facts_of(result)


def _facts(window: DeliveredWindow, result: CommitResult) -> dict[str, Any]:
    return {
        "stream": window.stream,
        "from": window.from_version,
        "to": window.to_version,
        "initial_rows": window.initial_rows,
        "rows": result.rows,
        "quarantined": result.quarantined,
        "serial": result.serial,
        "lag": window.lag_seconds,
        "committed_at": result.committed_at.isoformat(),
    }


def _say(result: CommitResult, task_started: Any) -> None:
    earlier = task_started is not None and result.committed_at < task_started
    for window in result.windows:
        span = f"({window.from_version}, {window.to_version}]"
        if window.initial_rows:
            span = f"with the rows at version {window.from_version}"
        if is_empty(result) and earlier:
            log.warning(
                "%s: this run found nothing new at %s; what came since is for the next run",
                window.stream,
                result.committed_at.isoformat(timespec="seconds"),
            )
        elif is_empty(result):
            log.info("%s: nothing new; the offset is at version %s", window.stream, window.to_version)
        elif earlier:
            log.warning(
                "%s: window %s was delivered at %s and is not delivered again",
                window.stream,
                span,
                result.committed_at.isoformat(timespec="seconds"),
            )
        else:
            log.info("%s: window %s delivered, %s rows written", window.stream, span, result.rows)
