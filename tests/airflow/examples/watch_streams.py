"""Alarms by mail, while there is still time: streams that soon can no longer be read, and all that needs attention."""

from __future__ import annotations

from airflow.sdk import DAG, task

from tidemark.metrics import emit_gauges
from tidemark.notifications.needing_objects import NeedingObjectsNotifier
from tidemark.notifications.stale_stream import StaleStreamNotifier
from tidemark.sensors.stale import StreamStaleSensor

# [START watch_streams]
with DAG("watch_streams", schedule="@hourly", catchup=False, max_active_runs=1) as watch_streams:
    # [START tell]
    tell = StaleStreamNotifier(
        hours_left=48,
        tell="airflow.providers.smtp.notifications.smtp.SmtpNotifier",
        tell_kwargs={"to": "data@example.org", "subject": "Streams at risk", "html_content": "{{ stale_message }}"},
    )
    # [END tell]

    # [START watch]
    watch = StreamStaleSensor(
        task_id="watch",
        hours_left=48,
        deferrable=True,
        poke_interval=600,
        timeout=3000,
        soft_fail=True,
        on_success_callback=tell,
    )
    # [END watch]
# [END watch_streams]

# [START watch_objects]
with DAG("watch_objects", schedule="@hourly", catchup=False, max_active_runs=1) as watch_objects:
    tell_all = NeedingObjectsNotifier(
        at_least="warning",
        tell="airflow.providers.smtp.notifications.smtp.SmtpNotifier",
        tell_kwargs={"to": "data@example.org", "subject": "Tidemark", "html_content": "{{ needs_html }}"},
    )

    gauges = task(emit_gauges, task_id="gauges", on_success_callback=tell_all)("tidemark_default")
# [END watch_objects]
