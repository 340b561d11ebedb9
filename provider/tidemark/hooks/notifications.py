"""Channels of notifications by Airflow connections: a queue of Amazon SQS, or a directory of documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tidemark.errors import NotificationsNotInstalled
from tidemark.pipes.model.notifications import NotificationChannel
from tidemark.pipes.model.pipes import Pipe
from tidemark.pipes.planning.channel_addresses import is_sqs, region_of, require_channel
from tidemark.pipes.worker.sqs_queue import PATIENCE, VISIBILITY, SqsQueue

__all__ = ["AWS_CONN_ID", "SqsChannel", "channel_at", "channels_of_pipes", "is_sqs"]

AWS_CONN_ID = "aws_default"


class SqsChannel(SqsQueue):
    """A queue of SQS, by an Airflow connection. Raises NotificationsNotInstalled without the provider of Amazon."""

    def __init__(self, queue: str, aws_conn_id: str = AWS_CONN_ID, *, visibility_seconds: int = VISIBILITY) -> None:
        super().__init__(queue, access=f"the connection {aws_conn_id}", visibility_seconds=visibility_seconds)
        self.aws_conn_id = aws_conn_id

    def open_client(self) -> Any:
        """The client of Amazon's hook. Settings of the connection come before the patience."""
        try:
            from airflow.providers.amazon.aws.hooks.sqs import SqsHook
            from botocore.config import Config  # type: ignore[import-untyped]
        except ImportError as error:
            raise NotificationsNotInstalled(channel=self.queue, problem=str(error)) from error
        hook = SqsHook(aws_conn_id=self.aws_conn_id, region_name=region_of(self.queue))
        return hook.get_client_type(config=Config(**PATIENCE).merge(hook.config))


def channel_at(
    address: str, options: Mapping[str, str] | None = None, aws_conn_id: str = AWS_CONN_ID
) -> NotificationChannel:
    """The channel at an address: the URL or ARN of a queue of SQS, or the path or URI of a directory.

    `options`: fsspec's, for the directory. Raises InvalidArgument for another address.
    """
    from tidemark.pipes.worker.notification_directory import DirectoryChannel

    require_channel(address)
    return SqsChannel(address, aws_conn_id) if is_sqs(address) else DirectoryChannel(address, options)


def channels_of_pipes(
    options: Mapping[str, str] | None, aws_conn_id: str = AWS_CONN_ID
) -> Callable[[Pipe], NotificationChannel | None]:
    """The channel of each pipe that has one."""

    def channel_of(pipe: Pipe) -> NotificationChannel | None:
        address = pipe.notification_channel
        return None if address is None else channel_at(address, options, aws_conn_id)

    return channel_of
