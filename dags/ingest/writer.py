"""Sends the lines of a file to the ingest service, each once: `python writer.py URL TABLE CHANNEL FILE`.

It needs nothing but Python. The offset token of a line is its number. After a crash, run it again: it continues behind
the last line that the table has. The writer's token is in the environment: INGEST_TOKEN. INGEST_PAUSE is the number of
seconds between requests, for those who want to watch.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from itertools import islice
from typing import Any

LINES_PER_REQUEST = 20
BUSY, UNAVAILABLE = 429, 503


class Channel:
    """A channel of the ingest service, open for this writer alone."""

    def __init__(self, url: str, table: str, channel: str, bearer: str) -> None:
        quoted = [urllib.parse.quote(part, safe="") for part in (table, channel)]
        self._url = "{}/v1/tables/{}/channels/{}".format(url.rstrip("/"), *quoted)
        self._bearer = bearer
        self._continuation = ""
        self._opens: tuple[int, int] | None = None

    def open(self) -> int:
        """The number of lines that the table has. An earlier writer of this channel can write no more."""
        answer = self._call("PUT", "")
        self._continuation = answer["next_continuation_token"]
        self._opens = _opens(answer["channel_status"])
        return int(answer["channel_status"]["last_committed_offset_token"] or 0)

    def append(self, lines: list[str], last: int) -> None:
        """Hand over the lines up to number `last`. They are in the table after the next commit, within a second."""
        query = urllib.parse.urlencode({"continuation_token": self._continuation, "offset_token": last})
        answer = self._call("POST", f"/rows?{query}", "".join(lines).encode())
        self._continuation = answer["next_continuation_token"]

    def flush(self) -> int:
        """The number of lines that the table has, once all that were handed over are in it."""
        status = self._call("POST", "/flush")
        if _opens(status) != self._opens:
            raise SystemExit(f"{status['opened_by']} has opened the channel, and this writer can write no more")
        return int(status["last_committed_offset_token"] or 0)

    def _call(self, method: str, path: str, body: bytes | None = None) -> Any:
        headers = {"Authorization": f"Bearer {self._bearer}", "Content-Type": "application/x-ndjson"}
        request = urllib.request.Request(self._url + path, body, headers, method=method)
        while True:
            try:
                with urllib.request.urlopen(request, timeout=150) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                if error.code not in (BUSY, UNAVAILABLE):
                    raise SystemExit(f"{error.code} {error.read().decode()}") from None
                time.sleep(int(error.headers.get("Retry-After") or 1))


def _opens(status: dict[str, Any]) -> tuple[int, int]:
    """The numbers that no other open of the channel has."""
    return status["created_on_ms"], status["client_sequencer"]


def send(channel: Channel, file: str) -> int:
    """Send the lines that the table does not have yet. The number of lines that it has at the end."""
    at = channel.open()
    with open(file, encoding="utf-8") as lines:
        rest = islice(lines, at, None)
        while batch := list(islice(rest, LINES_PER_REQUEST)):
            at += len(batch)
            channel.append(batch, at)
            time.sleep(float(os.environ.get("INGEST_PAUSE", "0")))
    return channel.flush()


if __name__ == "__main__":
    url, table, name, file = sys.argv[1:]
    print(f"{name}: {send(Channel(url, table, name, os.environ['INGEST_TOKEN']), file)} lines are in {table}")
