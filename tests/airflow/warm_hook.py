"""A hook whose jobs run in a warm Spark of their own, and the end of such servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tidemark.warm_spark.home import end_server, living_servers

if TYPE_CHECKING:
    from tidemark.hooks.tidemark import TidemarkHook

__all__ = ["end_warm_servers", "warm_hook"]


def warm_hook(jobs_root: Path, monkeypatch: pytest.MonkeyPatch, **extra: Any) -> TidemarkHook:
    """The hook of a default connection with those extras. Servers lie in the directory of jobs."""
    from tidemark.hooks.tidemark import TidemarkHook

    monkeypatch.delenv("TIDEMARK_SPARK_MODE")
    monkeypatch.setenv("TIDEMARK_JOBS_ROOT", str(jobs_root))
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps({"conn_type": "tidemark", "extra": extra}))
    return TidemarkHook()


def end_warm_servers(jobs_root: Path) -> None:
    for record, _ in living_servers(jobs_root / "spark"):
        end_server(record)
