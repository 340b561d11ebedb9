"""A delivery that stands before its first write until it is let go. It says so beside the target."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any


def hold(tx: Any) -> None:
    (stream,), (target,) = tx.streams, tx.targets
    said = Path(target.removeprefix("file://")).parent / "said"
    said.with_suffix(".begun").touch()
    while not said.with_suffix(".go").exists():
        time.sleep(0.1)
    tx.append(tx.stream(stream), target)
