"""What tests of triggers do: let one run beside a ticker, and move tables and offsets meanwhile."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.triggers.base import BaseTrigger

from tests.guarantees.synthetic_tables import SyntheticTable
from tests.guarantees.world import World
from tidemark.model.streams import StreamMode, TableRef
from tidemark.streams.worker.streams import create_stream

__all__ = ["Asked", "AssetState", "Sea", "Ticker", "fired", "in_seconds", "threads_of_triggers"]


@dataclass
class Sea:
    """The world, its clock at the present."""

    world: World
    tables: dict[str, SyntheticTable] = field(default_factory=dict)

    @property
    def source(self) -> SyntheticTable:
        return self.world.source

    def stream(self, name: str, *, table: SyntheticTable | None = None, scheme: str = "file", **more: Any) -> None:
        """Another stream, on a table of its own unless one is given."""
        table = table or SyntheticTable(self.world.root / "more" / name)
        self.tables[name] = self.world.by_uri[table.uri] = table
        ref = TableRef(name, table.uri.replace("file://", f"{scheme}://"), table.table_id)
        settings = {"mode": StreamMode.STANDARD, "at_version": table.head(), "who": "test", **more}
        create_stream(self.world.store, name=name, source=ref, **settings)

    def consume(self, run: str, **more: Any) -> None:
        self.world.clock.now = datetime.now(UTC)
        self.world.consume(run, 0, **more)


@dataclass(frozen=True)
class Asked:
    """A request to a storage: the name of the thread that made it, and when it did."""

    thread: str
    at: float


@dataclass
class Ticker:
    """Ticks every 10 ms on the event loop."""

    ticks: list[float] = field(default_factory=list)

    async def run(self) -> None:
        while True:
            self.ticks.append(time.monotonic())
            await asyncio.sleep(0.01)

    def went_on_beside(self, asked: list[Asked]) -> bool:
        """Whether it ticked while these were waited for, which were not made on the loop's thread.

        Thirty times as often where the machine has nothing else to do.
        """
        ticked = sum(asked[0].at < tick < asked[-1].at for tick in self.ticks)
        return ticked > len(asked) > 5 and "MainThread" not in {one.thread for one in asked}


class AssetState:
    """What Airflow gives a watcher to keep its state in: JSON values by key."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}
        self.writes = 0

    async def aget(self, key: str, default: Any = None) -> Any:
        return self.kept.get(key, default)

    async def aset(self, key: str, value: Any) -> None:
        self.kept[key] = value
        self.writes += 1


def in_seconds(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


def fired(
    trigger: BaseTrigger, meanwhile: Callable[[], Awaitable[None]] | None = None, ticker: Ticker | None = None
) -> Any:
    """The payload of the trigger's first event, as the triggerer would have it."""

    async def run() -> Any:
        beside = [asyncio.ensure_future(meanwhile())] if meanwhile else []
        if ticker is not None:
            beside.append(asyncio.ensure_future(ticker.run()))
        try:
            return (await anext(aiter(trigger.run()))).payload  # type: ignore[arg-type]
        finally:
            for task in beside:
                task.cancel()

    return asyncio.run(run())


def threads_of_triggers() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("tidemark-trigger"))
