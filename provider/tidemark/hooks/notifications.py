"""Channels of notifications by Airflow connections: a queue of Amazon SQS, or a directory of documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from tidemark.errors import NotificationsNotInstalled, NotificationsUnreachable
from tidemark.pipes.model.notifications import Notification, NotificationChannel
from tidemark.pipes.model.pipes import Pipe
from tidemark.pipes.planning.channel_addresses import is_sqs, queue_name_of, region_of, require_channel

__all__ = ["AWS_CONN_ID", "SqsChannel", "channel_at", "channels_of_pipes", "is_sqs"]

AWS_CONN_ID = "aws_default"
_VISIBILITY = 900  # seconds for which a document is hidden from other readers
_AT_ONCE = 10  # documents in one request, by SQS's limit
_WAIT = 1  # seconds, so that all servers of the queue are asked


class SqsChannel:
    """A queue of Amazon SQS, by its URL or ARN. A document is hidden from other readers for 15 minutes, and comes again
    unless it is acknowledged or held. A document that is not understood stays, until the queue's own policy for dead
    letters takes it.

    Needs the rights sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility; for an ARN sqs:GetQueueUrl,
    too. Raises NotificationsNotInstalled without the provider of Amazon.
    """

    def __init__(self, queue: str, aws_conn_id: str = AWS_CONN_ID, *, visibility_seconds: int = _VISIBILITY) -> None:
        self.queue = queue
        self.aws_conn_id = aws_conn_id
        self._visibility = visibility_seconds

    @property
    def hold_seconds(self) -> float | None:
        """A third of the time for which a document is hidden."""
        return self._visibility / 3

    def receive(self, most: int) -> Sequence[Notification]:
        """Documents that wait. Raises NotificationsUnreachable."""
        found: dict[str, Notification] = {}
        with self._errors_named():
            while len(found) < most:
                answer = self._client.receive_message(
                    QueueUrl=self._url,
                    MaxNumberOfMessages=min(_AT_ONCE, most - len(found)),
                    VisibilityTimeout=self._visibility,
                    WaitTimeSeconds=_WAIT,
                )
                messages = answer.get("Messages", ())
                if all(message["MessageId"] in found for message in messages):
                    break
                found.update((m["MessageId"], Notification(m["Body"], m["ReceiptHandle"])) for m in messages)
        return tuple(found.values())

    def waiting(self) -> int:
        """About how many documents wait, without those that are hidden. Needs sqs:GetQueueAttributes. Raises
        NotificationsUnreachable.
        """
        with self._errors_named():
            wanted = ["ApproximateNumberOfMessages"]
            answer = self._client.get_queue_attributes(QueueUrl=self._url, AttributeNames=wanted)
        return int(answer["Attributes"][wanted[0]])

    def hold(self, handles: Sequence[str]) -> None:
        """Hide the documents for the whole time again. Raises NotificationsUnreachable."""
        more = {"VisibilityTimeout": self._visibility}
        self._in_batches("change_message_visibility_batch", handles, more)

    def acknowledge(self, handles: Sequence[str]) -> None:
        """Remove the documents. Raises NotificationsUnreachable."""
        self._in_batches("delete_message_batch", handles, {})

    def refuse(self, handle: str) -> str | None:
        """Leave the document in the queue."""
        return "it stays in the queue"

    def _in_batches(self, call: str, handles: Sequence[str], more: Mapping[str, Any]) -> None:
        """One call for ten documents at a time. Raises NotificationsUnreachable if some of them fail."""
        failed: list[Mapping[str, Any]] = []
        with self._errors_named():
            for start in range(0, len(handles), _AT_ONCE):
                part = enumerate(handles[start : start + _AT_ONCE])
                entries = [{"Id": str(number), "ReceiptHandle": handle, **more} for number, handle in part]
                failed += getattr(self._client, call)(QueueUrl=self._url, Entries=entries).get("Failed", ())
        if failed:
            problem = f"{len(failed)} of {len(handles)} documents are refused by {call}: {failed[0].get('Message')}"
            raise self._unreachable(problem)

    @cached_property
    def _hook(self) -> Any:
        try:
            from airflow.providers.amazon.aws.hooks.sqs import SqsHook
        except ImportError as error:
            raise NotificationsNotInstalled(channel=self.queue, problem=str(error)) from error
        return SqsHook(aws_conn_id=self.aws_conn_id, region_name=region_of(self.queue))

    @cached_property
    def _client(self) -> Any:
        return self._hook.get_conn()

    @cached_property
    def _url(self) -> str:
        if not self.queue.startswith("arn:"):
            return self.queue
        account, name = queue_name_of(self.queue)
        return str(self._client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)["QueueUrl"])

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        _ = self._hook
        from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

        try:
            yield
        except (BotoCoreError, ClientError) as error:
            raise self._unreachable(" ".join(str(error).split())) from error

    def _unreachable(self, problem: str) -> NotificationsUnreachable:
        return NotificationsUnreachable(channel=self.queue, connection=self.aws_conn_id, problem=problem.rstrip("."))


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
