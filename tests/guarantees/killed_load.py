"""Runs a load for the kill tests: `killed_load.py HOME`, the job's spec in HOME/spec.json."""

from __future__ import annotations

import sys
from pathlib import Path

from tidemark.jobs.files import read_spec
from tidemark.jobs.run import run


def main(home: Path) -> None:
    from tidemark.testing import local_spark

    spark = local_spark(warehouse=home / "warehouse", more={"spark.sql.shuffle.partitions": "2"})
    (home / "ready").touch()
    result = run(spark, read_spec(str(home / "spec.json")))
    print(result)
    sys.exit(result.error is not None)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
