"""Functions that jobs of the tests hand records to."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tidemark.change_streams.planning.tokens import parse_token

HALF = 0x8000


def take(records: Any, chunk: Any) -> int:
    """A line for each chunk: its token, its number, the ids of the keys in order."""
    rows = records.select("mods").collect()
    keys = [json.loads(mod["keys"])["id"] for row in rows for mod in row["mods"]]
    with Path(os.environ["FAN_OUT_TAKEN"]).open("a") as taken:
        taken.write(f"{chunk.token} {chunk.number} {','.join(keys)}\n")
    return len(keys)


def fail_in_the_upper_half(records: Any, chunk: Any) -> int:
    """As long as there is a file `fail` beside what was taken."""
    part = parse_token(chunk.token)
    if part.lo and (Path(os.environ["FAN_OUT_TAKEN"]).parent / "fail").exists():
        raise ValueError("the upper half fails")
    return take(records, chunk)
