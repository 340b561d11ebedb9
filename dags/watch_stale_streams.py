"""No stream loses changes unnoticed: every hour, each stream of the control store is checked.

Each stream has one task instance with its name: *skipped* if all is well, a *success* if the stream is at risk. A
stream is at risk if it may become stale within two days. It is also at risk if it failed three times in a row, or has
had unconsumed changes for twelve hours. `alert` then reports all streams at risk at once: in its log, and by the
notifier in TELL. The triggerer reports a late run of this DAG by its deadline.

A stream that cannot be read any more waits for a decision: trigger `recreate_stale_stream` with its name.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, AsyncCallback, DeadlineAlert, DeadlineReference, TriggerRule, task

from tidemark.notifications.stale_stream import StaleStreamNotifier
from tidemark.sensors.stale import StreamStaleSensor

AT_RISK = {"hours_left": 48, "failures": 3, "unmoved_hours": 12}

# For mail: {"tell": "airflow.providers.smtp.notifications.smtp.SmtpNotifier",
#            "tell_kwargs": {"to": "data@example.org", "subject": "Streams", "html_content": "{{ stale_message }}"}}
TELL: dict[str, Any] = {}

log = logging.getLogger("watch_stale_streams")

with DAG(
    "watch_stale_streams",
    description="Reports streams that are stale or soon will be, that fail, and that nothing consumes",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 1, "retry_delay": timedelta(minutes=1)},
    deadline=DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=timedelta(minutes=30),
        callback=AsyncCallback(StaleStreamNotifier, kwargs={**AT_RISK, **TELL, "always": True}),
    ),
    doc_md=__doc__,
    tags=["tidemark", "example"],
) as dag:

    @task
    def streams() -> list[str | list[str]]:
        """Every stream; in groups if Airflow allows fewer mapped tasks than there are streams."""
        from airflow.sdk.configuration import conf

        from tidemark.hooks.tidemark import TidemarkHook
        from tidemark.streams.planning.groups import in_groups
        from tidemark.streams.worker.streams import list_streams

        names = [stream.name for stream in list_streams(TidemarkHook().open_store())]
        log.info("There are %s streams.", len(names))
        return in_groups(names, conf.getint("core", "max_map_length", fallback=1024))

    watch = StreamStaleSensor.partial(
        task_id="watch",
        map_index_template="{{ task.stream if task.stream is string else (task.stream | join(', ') | truncate(200)) }}",
        timeout=0,  # one check
        soft_fail=True,
        deferrable=False,
        **AT_RISK,
    ).expand(stream=streams())

    # Even if a check failed, as for a stream that was just dropped, the other streams are reported.
    @task(trigger_rule=TriggerRule.ALL_DONE, on_success_callback=StaleStreamNotifier(**AT_RISK, **TELL))
    def alert(found: list[list[dict[str, Any]]]) -> list[str]:
        """The names of the streams at risk; skips without any."""
        from airflow.sdk.exceptions import AirflowSkipException

        at_risk = [one for group in found or [] for one in group]
        if not at_risk:
            raise AirflowSkipException("No stream is at risk.")
        for one in at_risk:
            log.warning("%s is at risk (%s): %s", one["stream"], ", ".join(one["risks"]), one)
        return [one["stream"] for one in at_risk]

    alert(watch.output)
    watch >> EmptyOperator(task_id="all_looked", trigger_rule=TriggerRule.NONE_FAILED)  # shows a check that failed
