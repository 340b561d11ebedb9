"""Costs and savings of search paths, from a sample of the files of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tidemark.model.table_log import AddFile
from tidemark.search.model.jobs import Kept
from tidemark.search.model.paths import Search, SearchPath

__all__ = ["PathSample", "costs", "sample_of"]

_BYTES_PER_ENTRY = 10
_BYTES_PER_SECOND = 10_000_000  # of the base, for each path, until an upkeep has been measured
_MOST_SAMPLED = 16
_DAYS = 11
_MONTH = 30


@dataclass(frozen=True)
class PathSample:
    """The values of a path in some files: `entries`, different ones of each file, and `values`, different ones."""

    path: SearchPath
    files: int
    rows: int
    entries: int
    values: int


def sample_of(files: Sequence[AddFile]) -> tuple[AddFile, ...]:
    """One file of a hundred, evenly chosen: one at least, and 16 at most."""
    count = min(_MOST_SAMPLED, math.ceil(len(files) / 100))
    return tuple(files[place * len(files) // count] for place in range(count)) if count else ()


def costs(
    table: str,
    files: Mapping[str, AddFile],
    sample: Sequence[AddFile],
    samples: Sequence[PathSample],
    search: Search | None,
    history: Sequence[Kept],
    now: datetime,
) -> dict[str, Any]:
    """The answer of SYSTEM$ESTIMATE_SEARCH_OPTIMIZATION_COSTS. Positions have the names of the source system; times are
    in seconds and sizes in bytes, since nothing is billed here.
    """
    total = sum(file.size for file in files.values())
    sampled = sum(file.size for file in sample) or 1
    size = round(sum(one.entries for one in samples) * _BYTES_PER_ENTRY * total / sampled)
    seconds = total / _rate(history, len(samples))
    newer = _bytes_per_day(files, now)
    how = f"estimated from {len(sample)} of {len(files)} files"
    measured = None if search is None else _measured(search, samples)
    return {
        "tableName": table,
        "searchOptimizationEnabled": search is not None,
        "costPositions": [
            _position("BuildCosts", round(seconds, 1), "seconds", how),
            _position(
                "StorageCosts",
                size if measured is None else measured,
                "bytes",
                how if measured is None else "measured",
            ),
            {"name": "Benefit", "computationMethod": "Estimated", "paths": [_benefit(one, files) for one in samples]},
            {
                **_position(
                    "MaintenanceCosts",
                    round(newer * _MONTH / _rate(history, len(samples)), 1),
                    "seconds",
                    f"from the files of the last {_DAYS} days that are still in the table",
                ),
                "perTimeUnit": "MONTH",
            },
        ],
    }


def _measured(search: Search, samples: Sequence[PathSample]) -> int | None:
    """The size of the search table, if it has exactly the paths that are asked about; None if it has others."""
    asked = {one.path.said for one in samples}
    stored = {path.id for path in search.stored_paths if path.said in asked}
    same = len(stored) == len(asked) and stored == set(search.kept_ids)
    return search.size if same and search.kept_version is not None else None


def _position(name: str, value: float, unit: str, how: str) -> dict[str, Any]:
    method = "Measured" if how == "measured" else "Estimated"
    return {"name": name, "costs": {"value": value, "unit": unit}, "computationMethod": method, "comment": how}


def _benefit(sample: PathSample, files: Mapping[str, AddFile]) -> dict[str, Any]:
    """A value that is in several files of the sample is taken to be in that share of all files."""
    each = sample.entries / sample.values if sample.values else 0.0
    share = each / sample.files if sample.files else 0.0
    expected = each if each <= 1.0 else max(each, share * len(files))
    return {
        "expression": sample.path.said,
        "filesPerLookup": round(expected, 2),
        "filesOfTheTable": len(files),
        "valuesPerFile": sample.entries // max(1, sample.files),
    }


def _rate(history: Sequence[Kept], paths: int) -> float:
    """Bytes of the base that an upkeep covers in a second."""
    read = sum(one.mark.read for one in history)
    seconds = sum(one.seconds for one in history)
    return read / seconds if read and seconds else _BYTES_PER_SECOND / max(1, paths)


def _bytes_per_day(files: Mapping[str, AddFile], now: datetime) -> float:
    since = (now - timedelta(days=_DAYS)).timestamp() * 1000
    return sum(file.size for file in files.values() if file.modification_time >= since) / _DAYS
