"""Hands a job of the example to Spark: arguments and answer pass as JSON files."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["run_job", "tables"]

NAMES = {
    "board": "nyc.board",
    "mirror": "nyc.board_mirror",
    "history": "nyc.board_history",
    "late": "nyc.late_departures",
    "parallel": "nyc.board_in_parallel",
    "continuous": "nyc.board_continuously",
}


def run_job(job: str, **arguments: Any) -> dict[str, Any]:
    """Run `replay` or `report` on the Spark of the connection `tidemark_default` and hand back its answer.

    Raises JobDied with the last lines of the job if it fails.
    """
    from tidemark.hooks.spark_application import SparkApplication
    from tidemark.hooks.tidemark import TidemarkHook

    settings = TidemarkHook().settings
    application = Path(__file__).with_name("__main__.py")
    with tempfile.TemporaryDirectory(prefix="flights-") as directory:
        question, answer = Path(directory, "arguments.json"), Path(directory, "result.json")
        question.write_text(json.dumps({"tables": tables(settings.lake_root), **arguments}), encoding="utf-8")
        spark = SparkApplication(settings)
        spark.run_application(application, [job, str(question), str(answer)], name=job, needs_jvm=False)
        found: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    return found


def tables(lake_root: str) -> Mapping[str, str]:
    """The paths of the example's tables: a name `schema.table` is a path under the lake's root.

    Local ones are plain paths: for Delta, `file:///…` differs from `file:/…`, and it creates no table there.
    """
    lake_root = lake_root.removeprefix("file://")
    return {role: f"{lake_root}/{name.replace('.', '/')}" for role, name in NAMES.items()}
