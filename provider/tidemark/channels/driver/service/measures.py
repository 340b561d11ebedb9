"""The metrics of the ingest service, in OpenMetrics text."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest

__all__ = ["Measures"]


class Measures:
    """`open_channels`, `buffered_bytes`: functions that are called at each scrape."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(self, *, open_channels: Callable[[], float], buffered_bytes: Callable[[], float]) -> None:
        self._registry = CollectorRegistry()
        self._rows = self._counter("rows", "Rows taken into buffers", "table")
        self._bad_rows = self._counter("row_errors", "Rows that did not fit their table", "table")
        self._bytes = self._counter("body_bytes", "Bytes of request bodies as they came", "table")
        self._requests = self._counter("requests", "Requests by route and status", "route", "status")
        self._seconds = Histogram(
            "tidemark_ingest_request_seconds", "Seconds of requests", ["route"], registry=self._registry
        )
        self._gauge("open_channels", "Channels that writers have open", open_channels)
        self._gauge("buffered_bytes", "Bytes of rows that are not committed", buffered_bytes)

    def took(self, table: str, rows: int, errors: int, size: int) -> None:
        """An append that was taken."""
        self._rows.labels(table).inc(rows)
        self._bad_rows.labels(table).inc(errors)
        self._bytes.labels(table).inc(size)

    def answered(self, route: str, status: int, seconds: float) -> None:
        """A request that was answered."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """All metrics."""
        text: bytes = generate_latest(self._registry)  # type: ignore[no-untyped-call]
        return text

    def _counter(self, name: str, help_text: str, *labels: str) -> Counter:
        return Counter(f"tidemark_ingest_{name}", help_text, labels, registry=self._registry)

    def _gauge(self, name: str, help_text: str, look: Callable[[], float]) -> None:
        Gauge(f"tidemark_ingest_{name}", help_text, registry=self._registry).set_function(look)
