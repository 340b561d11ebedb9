"""The assets of a stream (it has data, it was consumed), of a pipe's files, a view, and a replicated object."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow.sdk import Asset, AssetWatcher

from tidemark.hooks.tidemark import DEFAULT_CONN_ID

if TYPE_CHECKING:
    from airflow.triggers.base import BaseEventTrigger

__all__ = [
    "REFRESHED_VIEWS",
    "pipe_files_asset",
    "pipe_notifications_asset",
    "replicated_alias",
    "replicated_asset",
    "stream_asset",
    "stream_data_asset",
    "view_asset",
]

REFRESHED_VIEWS = "tidemark.refreshed_views"  # the alias that gets an event for the asset of each refreshed view


def stream_asset(name: str) -> Asset:
    """The asset that gets an event each time the stream `name` is consumed; consumers may be scheduled on it.

    An event is a wake-up hint. Its extra has the delivered window, but only the control store is authoritative.
    """
    return Asset(name=f"tidemark.{name}", uri=f"x-tidemark://streams/{name}")


def stream_data_asset(name: str, *, conn_id: str = DEFAULT_CONN_ID, **intervals: float) -> Asset:
    """The asset that gets an event when the stream `name` has data: `schedule=[stream_data_asset("s")]` (R126).

    A trigger in the triggerer watches the stream while a DAG that is not paused is scheduled on the asset. It announces
    data once for each offset, and again until it is consumed. `intervals` are seconds: `poll_interval`, `renew_after`
    and `keep_fresh_after` of StreamDataEventTrigger. All DAGs must create the asset by this function with the same
    arguments. The watched stream is a property of the asset, and the last parsed file decides.

    An event is a wake-up hint. Its extra has the stream's offset, but only the control store is authoritative.
    """
    from tidemark.triggers.watchers import StreamDataEventTrigger

    place = _place(name, conn_id)
    trigger = StreamDataEventTrigger(stream=name, conn_id=conn_id, **intervals)
    return _watched("data", place, trigger)


def pipe_files_asset(pipe: str, *, conn_id: str = DEFAULT_CONN_ID, **intervals: float) -> Asset:
    """The asset that gets an event when the location of a pipe has new files: `schedule=[pipe_files_asset("p")]`.

    A trigger in the triggerer lists the location while a DAG that is not paused is scheduled on the asset. It announces
    each set of files once, and again until they are taken. It needs a pipe with auto_ingest. `intervals` are seconds:
    `poll_interval` and `renew_after` of PipeFilesEventTrigger. All DAGs must create the asset by this function with the
    same arguments.

    An event is a wake-up hint. Its extra has the number of files, but only the pipe's queue is authoritative.
    """
    from tidemark.triggers.pipes import PipeFilesEventTrigger

    place = _place(pipe, conn_id)
    trigger = PipeFilesEventTrigger(pipe=pipe, conn_id=conn_id, **intervals)
    return _watched("files", place, trigger)


def pipe_notifications_asset(
    channel: str, *, aws_conn_id: str = "aws_default", conn_id: str = DEFAULT_CONN_ID, **intervals: float
) -> Asset:
    """The asset that gets an event when notifications wait: `schedule=[pipe_notifications_asset("https://sqs…")]`.

    `channel` is the pipe's: the URL or ARN of a queue of SQS, or a directory of documents. A trigger in the triggerer
    counts them while a DAG that is not paused is scheduled on the asset, and takes none. `intervals` are seconds:
    `poll_interval` and `renew_after` of NotificationsEventTrigger. All DAGs must create the asset by this function with
    the same arguments.

    An event is a wake-up hint. Its extra has about the number of notifications.
    """
    from tidemark.triggers.notifications import NotificationsEventTrigger

    trigger = NotificationsEventTrigger(channel=channel, aws_conn_id=aws_conn_id, conn_id=conn_id, **intervals)
    return _watched("notifications", quote(channel, safe=""), trigger)


def view_asset(name: str) -> Asset:
    """The asset that gets an event each time the view `name` is refreshed; its readers may be scheduled on it.

    An event is a wake-up hint. Its extra has the way, the rows and the lag of the refresh.
    """
    return Asset(name=f"tidemark.view.{name}", uri=f"x-tidemark://views/{name}")


def replicated_asset(replication: str, object_name: str) -> Asset:
    """The asset that gets an event for each write to the target of the object `schema.table`; consumers may be
    scheduled on it.

    An event is a wake-up hint. Its extra has rows, range and lag, but only the control store is authoritative.
    """
    place = f"{quote(replication, safe='')}/{quote(object_name, safe='.')}"
    return Asset(name=f"tidemark-replicated.{place}", uri=f"x-tidemark://replications/{place}")


def replicated_alias(replication: str) -> str:
    """The name of the alias under which a replication's tasks report its objects, which are unknown when the DAG is
    parsed. A DAG scheduled on the alias runs for each object.
    """
    return f"tidemark-replicated.{replication}"


def _place(name: str, conn_id: str) -> str:
    """The name in addresses of assets, with its connection if that is not the default."""
    place = quote(name, safe="")
    return place if conn_id == DEFAULT_CONN_ID else f"{quote(conn_id, safe='')}/{place}"


def _watched(kind: str, place: str, trigger: BaseEventTrigger) -> Asset:
    """The asset that gets the events of the trigger."""
    name = f"tidemark-{kind}.{place}"
    return Asset(name=name, uri=f"x-tidemark://{kind}/{place}", watchers=[AssetWatcher(name=name, trigger=trigger)])
