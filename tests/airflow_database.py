"""Airflow's metadata database in the homes of tests: migrated once on a machine, then copied."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

__all__ = ["put_metadata_database"]

CACHE = Path(__file__).parents[1] / ".cache"


def put_metadata_database(home: Path) -> None:
    """Makes `home` an Airflow home whose SQLite database is at the revision of the Airflow that is installed."""
    kept = CACHE / f"airflow-{version('apache-airflow-core')}.db"
    if not kept.exists():
        _keep_migrated(kept)
    home.mkdir(parents=True, exist_ok=True)
    shutil.copy(kept, home / "airflow.db")


def _keep_migrated(kept: Path) -> None:
    """Two processes at once each make one; the file is whole at any time."""
    kept.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tidemark-airflow-") as home:
        environment = {**os.environ, "AIRFLOW_HOME": home}
        migrate = [sys.executable, "-m", "airflow", "db", "migrate"]
        subprocess.run(migrate, env=environment, check=True, capture_output=True, timeout=300)
        half = kept.with_suffix(f".{os.getpid()}")
        shutil.copy(Path(home) / "airflow.db", half)
        half.replace(kept)
