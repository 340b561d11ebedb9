"""Small tables that Delta wrote, kept in `golden/`. Write them again: python -m tests.unit.lake.golden_logs"""

from __future__ import annotations

import shutil
from pathlib import Path

__all__ = ["GOLDEN", "NAMES"]

GOLDEN = Path(__file__).parent / "golden"
PROPERTIES = {
    "vectors": {"delta.checkpointInterval": "3"},
    "exact_times": {
        "delta.checkpointInterval": "3",
        "delta.checkpointPolicy": "v2",
        "delta.enableInCommitTimestamps": "true",
    },
}
NAMES = tuple(PROPERTIES)


def write_golden_logs() -> None:
    from tidemark.testing import local_spark

    spark = local_spark(more={"spark.databricks.delta.checkpointV2.topLevelFileFormat": "json"})
    for name, more in PROPERTIES.items():
        path = GOLDEN / name
        shutil.rmtree(path, ignore_errors=True)
        table = f"delta.`{path}`"
        given = {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true", **more}
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
        spark.sql(f"CREATE TABLE {table} (k INT, p STRING) USING delta PARTITIONED BY (p) TBLPROPERTIES ({listed})")
        for text in (
            "INSERT INTO {t} SELECT /*+ COALESCE(1) */ CAST(id AS INT), 'a' FROM range(5)",
            "INSERT INTO {t} SELECT /*+ COALESCE(1) */ CAST(id AS INT), 'b %' FROM range(5)",
            "DELETE FROM {t} WHERE k = 1",
            "UPDATE {t} SET k = k + 10 WHERE k = 2",
            "ALTER TABLE {t} SET TBLPROPERTIES ('note' = 'zażółć')",
            "OPTIMIZE {t}",
            "INSERT OVERWRITE {t} SELECT /*+ COALESCE(1) */ CAST(id AS INT), 'c' FROM range(2)",
        ):
            spark.sql(text.replace("{t}", table)).collect()
        for hidden in (*path.rglob(".*.crc"), path / "_delta_log" / "_staged_commits"):
            shutil.rmtree(hidden) if hidden.is_dir() else hidden.unlink(missing_ok=True)
    spark.stop()


if __name__ == "__main__":
    write_golden_logs()
