"""Streams from a notebook, a script or a test: `connect(spark, control_store=…)`."""

from tidemark.client.connection import connect
from tidemark.client.descriptions import StreamDescription
from tidemark.client.lake import Lake
from tidemark.client.points import Offset, Statement, Stream, Timestamp, Version
from tidemark.client.transaction import LakeTransaction

__all__ = [
    "Lake",
    "LakeTransaction",
    "Offset",
    "Statement",
    "Stream",
    "StreamDescription",
    "Timestamp",
    "Version",
    "connect",
]
