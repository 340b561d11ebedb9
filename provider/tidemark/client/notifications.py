"""Channels of notifications in a client, without Airflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tidemark.pipes.planning.channel_addresses import is_sqs, require_channel
from tidemark.pipes.worker.notification_directory import DirectoryChannel
from tidemark.pipes.worker.sqs_queue import SqsQueue

if TYPE_CHECKING:
    from tidemark.client.context import ClientContext
    from tidemark.pipes.model.notifications import NotificationChannel
    from tidemark.pipes.model.pipes import Pipe

__all__ = ["channels_of"]


def channels_of(context: ClientContext) -> Callable[[Pipe], NotificationChannel | None]:
    """The channel of each pipe that has one.

    A directory is read by the storage options of the client, and a queue of SQS by boto3's configuration.
    """

    def channel_of(pipe: Pipe) -> NotificationChannel | None:
        address = pipe.notification_channel
        if address is None:
            return None
        require_channel(address)
        return SqsQueue(address) if is_sqs(address) else DirectoryChannel(address, context.options)

    return channel_of
