"""The asset that stands for a consumed stream."""

from __future__ import annotations

from airflow.sdk import Asset

__all__ = ["stream_asset"]


def stream_asset(name: str) -> Asset:
    """The asset that gets an event each time the stream `name` is consumed; consumers may be scheduled on it.

    An event is a wake-up hint: its extra says what was delivered, the control store is the truth.
    """
    return Asset(name=f"tidemark.{name}", uri=f"x-tidemark://streams/{name}")
