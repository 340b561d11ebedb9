"""A hook whose jobs run in a warm Spark of their own, clients of such servers, and their end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tidemark.warm_spark.home import end_server, living_servers
from tidemark.warm_spark.locks import locked
from tidemark.warm_spark.records import ServerRecord

if TYPE_CHECKING:
    from tidemark.hooks.tidemark import TidemarkHook

__all__ = ["CANCELLED", "SESSION", "end_warm_servers", "ended_by_the_server", "refusal_of", "warm_hook"]

SESSION = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote({url!r}).getOrCreate()
{query}
"""

CANCELLED = """
import threading, time
from pyspark.errors import PySparkException
from tidemark.jobs.remote_session import leave
{session}
def count():
    try:
        spark.range(0, 10**14, 1, 2).where("id % 7 = 3").count()
    except PySparkException:
        pass
counting = threading.Thread(target=count, daemon=True)
spark.range(1).count()
counting.start()
time.sleep({seconds})
assert leave(spark)
"""


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


@contextmanager
def ended_by_the_server(server: ServerRecord, session: str) -> Iterator[None]:
    """The session holds a slot inside. It is left as if its task was killed."""
    slot = server.place / "slot-0"
    with locked(slot, lambda: None):
        slot.write_text(session)
        yield


def refusal_of(url: str) -> str:
    """The error that a client of that URL gets; it must fail."""
    code = SESSION.format(url=url, query="print(spark.range(3).count())")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0, done.stdout
    return done.stderr
