"""Files that only their owner may read."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["write_private"]


def write_private(file: Path, text: str) -> None:
    """Mode 0600 from the first byte on; what was there before is gone."""
    file.unlink(missing_ok=True)
    with open(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as target:
        target.write(text)
