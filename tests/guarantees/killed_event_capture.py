"""Captures events by the job, for the kill tests: `killed_event_capture.py HOME`, the job's spec in HOME/spec.json."""

from __future__ import annotations

import sys
from pathlib import Path

from tidemark.jobs.files import read_spec
from tidemark.jobs.run import run
from tidemark.model.codec import from_json
from tidemark.model.source_address import SourceAddress


def main(home: Path) -> None:
    from tidemark.testing import local_spark

    source = from_json(SourceAddress, (home / "source.json").read_text())
    result = run(local_spark(warehouse=home / "warehouse"), read_spec(str(home / "spec.json")), source=source)
    print(result)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
