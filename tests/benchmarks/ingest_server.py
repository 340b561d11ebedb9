"""The app of the ingest service in a process of its own: `ingest_server LAKE TOKENS PORT`. Its tables are plain
names.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import uvicorn

from tidemark.channels.driver.client import IngestClient
from tidemark.channels.driver.jvm import start_engine
from tidemark.channels.driver.limits import Limits
from tidemark.channels.driver.service.access import Access
from tidemark.channels.driver.service.app import ServiceLimits, ingest_app
from tidemark.channels.driver.service.desk import IngestDesk
from tidemark.channels.driver.service.measures import Measures
from tidemark.channels.planning.listing import records_of
from tidemark.lake.delta_log import DeltaLog


def main(lake: str, tokens: str, port: int) -> None:
    def locate(table: str) -> str:
        return f"file://{lake}/{table}"

    limits = Limits(insert_patience=timedelta(0))
    with IngestClient("service", start_engine({}), locate, options={}, limits=limits) as client:
        desk = IngestDesk(client, lambda table: records_of(DeltaLog.open(locate(table)).state()))
        measures = Measures(open_channels=lambda: desk.open_channels, buffered_bytes=client.buffered_bytes)
        app = ingest_app(desk, Access(Path(tokens)), measures, ServiceLimits(16 << 20))
        uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
