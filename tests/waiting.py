"""The tests that wait for `make test-all` though their file is in `make test`, as tests/waiting.toml lists them."""

from __future__ import annotations

import tomllib
from pathlib import Path

__all__ = ["LATER", "REASON", "RUN_NOW"]

REASON = "a history of its own with Spark, or more than a commit can wait for"
_LISTED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
RUN_NOW: dict[str, tuple[str, ...]] = {file: tuple(names) for file, names in _LISTED["run_now"].items()}
LATER: dict[str, dict[str, str | None]] = {
    file: {test: proof or None for test, proof in proofs.items()} for file, proofs in _LISTED["later"].items()
}
