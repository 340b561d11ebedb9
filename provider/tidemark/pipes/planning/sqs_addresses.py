"""Addresses of queues of Amazon SQS."""

from __future__ import annotations

import re

__all__ = ["is_sqs", "queue_name_of", "region_of"]

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
