"""A writer that continues behind its committed token: `killed_writer.py LAKE CHANNEL LAST HOST`. Row n has the token n.
Each tenth row is bad, and goes to a quarantine.

HOST says who commits: `own` is a small JVM of the writer's, `driver` a Spark driver, and anything else is the URL of an
ingest service. A writer outlives its service.
"""

from __future__ import annotations

import random
import sys
import time
from typing import Any

from tests.guarantees.killed_service import TOKEN
from tidemark.channels.driver.client import IngestClient
from tidemark.channels.driver.jvm import start_engine
from tidemark.channels.driver.kernel import KernelEngine
from tidemark.client.ingest_service import ServiceClient
from tidemark.errors import ChannelInvalid, IngestServiceRefused, IngestUnavailable, RowsNotCommitted
from tidemark.testing import local_spark

TABLE, QUARANTINE = "events", "bad_events"
OUTLIVED = (ChannelInvalid, IngestUnavailable, IngestServiceRefused, RowsNotCommitted)


def main(lake: str, channel: str, last: int, host: str) -> None:
    if host.startswith("http"):
        while not sent(host, channel, last):
            time.sleep(0.2)
        return
    engine = start_engine({}) if host == "own" else KernelEngine.of_session(local_spark(memory="1g"))
    with IngestClient(channel, engine, lambda table: f"file://{lake}/{table}", options={}) as client:
        write(client, channel, last)


def sent(url: str, channel: str, last: int) -> bool:
    """Whether the service took all rows. If it ended, another one may come."""
    try:
        with ServiceClient(url, TOKEN) as client:
            write(client, channel, last)
    except OUTLIVED as problem:
        print(problem, flush=True)
        return False
    return True


def write(client: Any, channel: str, last: int) -> None:
    with client.open_channel(channel, TABLE, on_error="continue", quarantine=QUARANTINE) as opened:
        at = int(opened.offset_token or 0)
        print("begins behind", at, flush=True)
        while at < last:
            end = min(last, at + random.randint(1, 40))
            rows = [{"channel": channel, "n": n if n % 10 else f"bad {n}"} for n in range(at + 1, end + 1)]
            opened.insert_rows(rows, str(end))
            at = end
            if random.random() < 0.3:
                opened.flush()
                assert opened.latest_committed_offset_token() == str(at)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
