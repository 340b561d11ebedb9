"""Functions that jobs of the tests import: they lie beside the DAG's file, as users' functions do."""

from __future__ import annotations

import os
from typing import Any


def keep_names(tx: Any) -> None:
    """Writes both declared targets: rows by API, a count by SQL."""
    inserted = tx.stream("f").where("`METADATA$ACTION` = 'INSERT'")
    tx.append(inserted.select("id", "name"), "t.names")
    tx.sql("INSERT INTO t.counts SELECT count(*) AS n FROM f")


def keep_inserted(tx: Any) -> None:
    """Appends the inserted rows to the declared target, and says which variables it sees."""
    print(f"tidemark: sees {' '.join(sorted(os.environ))}", flush=True)
    inserted = tx.stream("submitted").where("`METADATA$ACTION` = 'INSERT'")
    tx.append(inserted.select("id", "name"), "t2.names")
