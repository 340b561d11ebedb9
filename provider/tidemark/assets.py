"""The assets that stand for a stream: that it has data, and that it was consumed; and for a replicated object."""

from __future__ import annotations

from urllib.parse import quote

from airflow.sdk import Asset, AssetWatcher

from tidemark.hooks.tidemark import DEFAULT_CONN_ID

__all__ = ["replicated_alias", "replicated_asset", "stream_asset", "stream_data_asset"]


def stream_asset(name: str) -> Asset:
    """The asset that gets an event each time the stream `name` is consumed; consumers may be scheduled on it.

    An event is a wake-up hint: its extra says what was delivered, the control store is the truth.
    """
    return Asset(name=f"tidemark.{name}", uri=f"x-tidemark://streams/{name}")


def stream_data_asset(name: str, *, conn_id: str = DEFAULT_CONN_ID, **intervals: float) -> Asset:
    """The asset that gets an event when the stream `name` has data: `schedule=[stream_data_asset("s")]` (R126).

    A trigger in the triggerer watches the stream for as long as a DAG that is not paused is scheduled on the asset. It
    announces data once for each offset, and again while nobody consumes it; see StreamDataEventTrigger, whose
    `poll_interval`, `renew_after` and `keep_fresh_after` are taken in seconds. All DAGs must make the asset by this
    function with the same arguments: what it watches is a property of the asset, and the last file parsed decides.

    An event is a wake-up hint: its extra says where the stream stood, the control store is the truth.
    """
    from tidemark.triggers.watchers import StreamDataEventTrigger

    place = quote(name, safe="")
    if conn_id != DEFAULT_CONN_ID:
        place = f"{quote(conn_id, safe='')}/{place}"
    trigger = StreamDataEventTrigger(stream=name, conn_id=conn_id, **intervals)
    return Asset(
        name=f"tidemark-data.{place}",
        uri=f"x-tidemark://data/{place}",
        watchers=[AssetWatcher(name=f"tidemark-data.{place}", trigger=trigger)],
    )


def replicated_asset(replication: str, object_name: str) -> Asset:
    """The asset that gets an event each time the target of the object `schema.table` was written: consumers may be
    scheduled on it. An event is a wake-up hint: its extra says rows, range and lag, the control store is the truth.
    """
    place = f"{quote(replication, safe='')}/{quote(object_name, safe='.')}"
    return Asset(name=f"tidemark-replicated.{place}", uri=f"x-tidemark://replications/{place}")


def replicated_alias(replication: str) -> str:
    """The name of the alias through which the tasks of a replication tell of its objects, which are not known when the
    DAG is parsed; a DAG scheduled on the alias runs for each of them.
    """
    return f"tidemark-replicated.{replication}"
