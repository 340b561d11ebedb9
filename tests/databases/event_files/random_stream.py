"""A table of a MySQL at random, as Datastream tells of it: files of any order, with repeats, beside a backfill."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = ["RandomStream"]

BEGUN = 1_714_557_600_000


@dataclass
class RandomStream:
    """`late`: events in files that come after files with newer ones; `twice`: events that come again."""

    seed: int
    late: int = 0
    twice: int = 0
    _rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    _place: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self._rows = {key: self._row(key) for key in range(1, 20)}  # of before the stream

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The table as it is now."""
        return sorted((tuple(row[name] for name in ("id", "total", "note")) for row in self._rows.values()), key=repr)

    def files(self, *, runs: int, changes: int) -> Iterator[dict[str, list[Any]]]:
        """Files that come before each run. All have come before the last."""
        waiting: list[tuple[int, str, list[Any]]] = []
        backfill: list[Any] = []
        for run in range(runs):
            events = [one for _ in range(changes) for one in self._change()]
            while events:
                part, events = events[:7], events[7:]
                arrives = min(runs - 1, run + self.chance.choice([0, 0, 0, 1]))
                self.late += len(part) if arrives > run else 0
                waiting.append((arrives, self._name(part[0], "mysql-cdc-binlog"), self._shuffled(part)))
            if run == 0:
                backfill = [self._event("INSERT", dict(row), backfill=True) for row in self._rows.values()]
                half = len(backfill) // 2
                waiting.append((0, self._name(backfill[0], "mysql-backfill-fulldump"), backfill[:half]))
                later = self._name(backfill[half], "mysql-backfill-fulldump")
                waiting.append((min(1, runs - 1), later, backfill[half:]))
            yield {name: lines for arrives, name, lines in waiting if arrives == run}

    def _shuffled(self, part: list[Any]) -> list[Any]:
        again = [one for one in part if self.chance.random() < 0.1]
        self.twice += len(again)
        found = [*part, *again]
        self.chance.shuffle(found)
        return found

    def _name(self, first: dict[str, Any], method: str) -> str:
        minute = first["source_timestamp"][11:16].replace(":", "/")
        return f"shop_orders/2024/05/01/{minute}/{self.chance.randrange(16**12):012x}_{method}_1_0.jsonl"

    def _row(self, key: int) -> dict[str, Any]:
        return {"id": key, "total": self.chance.randint(0, 999), "note": self.chance.choice(["a", "b", "ü\"'\\"])}

    def _change(self) -> list[dict[str, Any]]:
        self._place += self.chance.randint(1, 200)
        chance, key = self.chance.random(), self.chance.randint(1, 40)
        if key not in self._rows:
            self._rows[key] = self._row(key)
            return [self._event("INSERT", self._rows[key])]
        if chance < 0.5:
            self._rows[key] = self._row(key)
            return [self._event("UPDATE-INSERT", self._rows[key])]
        gone = self._rows.pop(key)
        if chance < 0.8:
            return [self._event("DELETE", gone)]
        new = next(number for number in range(41, 1000) if number not in self._rows)
        self._rows[new] = {**self._row(new)}
        return [self._event("UPDATE-INSERT", self._rows[new]), self._event("UPDATE-DELETE", gone)]

    def _event(self, change: str, row: dict[str, Any], *, backfill: bool = False) -> dict[str, Any]:
        millis = BEGUN + self._place
        file = "" if backfill else f"mysql-bin.{9 + self._place // 6000:06d}"
        place = 0 if backfill else self._place % 6000
        return {
            "stream_name": "projects/p/locations/l/streams/s",
            "read_method": "mysql-backfill-fulldump" if backfill else "mysql-cdc-binlog",
            "object": "shop_orders",
            "schema_key": "a" * 40,
            "uuid": f"{self.chance.randrange(16**32):032x}",
            "read_timestamp": "2024-05-01T10:05:00.000Z",
            "source_timestamp": f"2024-05-01T10:{self._place // 60_000 % 60:02d}:{self._place // 1000 % 60:02d}.000Z",
            "sort_keys": [millis, file, place],
            "source_metadata": {
                "log_file": file,
                "log_position": place,
                "primary_keys": ["id"],
                "is_deleted": change in ("DELETE", "UPDATE-DELETE"),
                "database": "shop",
                "table": "orders",
                "change_type": change,
            },
            "payload": row,
        }
