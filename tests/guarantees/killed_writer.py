"""A writer that continues behind its committed token: `killed_writer.py LAKE CHANNEL LAST`. Row n has the token n.
Each tenth row is bad, and goes to a quarantine.
"""

from __future__ import annotations

import random
import sys

from tidemark.channels.driver.client import IngestClient
from tidemark.channels.driver.jvm import start_engine

TABLE, QUARANTINE = "events", "bad_events"


def main(lake: str, channel: str, last: int) -> None:
    client = IngestClient(f"writer of {channel}", start_engine({}), lambda table: f"file://{lake}/{table}", options={})
    how = {"on_error": "continue", "quarantine": QUARANTINE}
    with client, client.open_channel(channel, TABLE, **how) as opened:
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
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
