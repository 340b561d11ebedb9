"""Addresses of channels of notifications: queues of Amazon SQS, and directories."""

from __future__ import annotations

import re

from tidemark.errors import InvalidArgument
from tidemark.pipes.planning.locations import require_location

__all__ = ["is_sqs", "queue_name_of", "region_of", "require_channel"]

_ARN = re.compile(r"arn:[a-z0-9-]+:sqs:([a-z0-9-]+):([0-9]+):([A-Za-z0-9_.-]+)")
_URL = re.compile(r"https?://[^/@]+/.+", re.IGNORECASE)
_HOST = re.compile(r"https?://(?:sqs\.([a-z0-9-]+)\.|([a-z0-9-]+)\.queue\.)amazonaws\.com", re.IGNORECASE)


def is_sqs(address: str) -> bool:
    """Whether an address of notifications is a queue of SQS: an ARN, or a URL of http or https."""
    return _ARN.fullmatch(address) is not None or _URL.fullmatch(address) is not None


def region_of(address: str) -> str | None:
    """The region in a queue's ARN or URL; None if it names none, as that of another server."""
    arn, host = _ARN.fullmatch(address), _HOST.match(address)
    if arn is not None:
        return arn[1]
    return None if host is None else (host[1] or host[2])


def queue_name_of(arn: str) -> tuple[str, str]:
    """Account and name of the queue of an ARN."""
    found = _ARN.fullmatch(arn)
    assert found is not None
    return found[2], found[3]


def require_channel(address: str) -> None:
    """Nothing for the URL or ARN of a queue of SQS, and for the path or URI of a directory. Raises InvalidArgument."""
    if is_sqs(address):
        return
    if address.startswith("arn:"):
        problem = "only queues of SQS can be read; subscribe one to the topic, and give its ARN"
        raise InvalidArgument(argument="notification_channel", value=address, problem=problem)
    require_location(address, "notification_channel")
