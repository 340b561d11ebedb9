"""An ingest service that gets killed: `killed_service.py LAKE PORT`. It has a small JVM of its own."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from tests.benchmarks.ingest_server import main
from tidemark.channels.model.grants import Grants
from tidemark.channels.planning.grants import with_grant
from tidemark.model.codec import to_json

TOKEN = "a token of the test"

if __name__ == "__main__":
    lake, port = sys.argv[1:]
    tokens = Path(lake) / "tokens.json"
    tokens.write_text(to_json(with_grant(Grants(), "test", TOKEN, ("*",), datetime.now(UTC))))
    main(lake, str(tokens), int(port))
