"""A queue of Amazon SQS as a channel of notifications."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from tidemark.errors import NotificationsNotInstalled, NotificationsUnreachable
from tidemark.pipes.model.notifications import Notification
from tidemark.pipes.planning.channel_addresses import queue_name_of, region_of

__all__ = ["PATIENCE", "VISIBILITY", "SqsQueue"]

VISIBILITY = 900  # seconds for which a document is hidden from other readers
_AT_ONCE = 10  # documents in one request, by SQS's limit
_WAIT = 1  # seconds, so that all servers of the queue are asked
PATIENCE: Mapping[str, Any] = {"connect_timeout": 5, "read_timeout": 20, "retries": {"total_max_attempts": 3}}


class SqsQueue:
    """A queue of Amazon SQS, by its URL or ARN. A document is hidden from other readers for 15 minutes, and comes again
    unless it is acknowledged or held. A document that is not understood stays, until the queue's own policy for dead
    letters takes it. Clients are made by boto3's own configuration: profiles, variables of the environment, roles.

    Needs the rights sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility; for an ARN sqs:GetQueueUrl,
    too. Raises NotificationsNotInstalled without boto3. `access`: the name of the credentials, for errors.
    """

    def __init__(
        self, queue: str, *, access: str = "boto3's configuration", visibility_seconds: int = VISIBILITY
    ) -> None:
        self.queue = queue
        self.access = access
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

    def waiting(self, most: int = 1_000) -> int:
        """About how many documents wait, all of them, without those that are hidden. Needs sqs:GetQueueAttributes.
        Raises NotificationsUnreachable.
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

    def open_client(self) -> Any:
        """A client of SQS. Raises NotificationsNotInstalled."""
        try:
            import boto3  # type: ignore[import-untyped]
            from botocore.config import Config  # type: ignore[import-untyped]
        except ImportError as error:
            raise NotificationsNotInstalled(channel=self.queue, problem=str(error)) from error
        return boto3.client("sqs", region_name=region_of(self.queue), config=Config(**PATIENCE))

    @cached_property
    def _client(self) -> Any:
        return self.open_client()

    @cached_property
    def _url(self) -> str:
        if not self.queue.startswith("arn:"):
            return self.queue
        account, name = queue_name_of(self.queue)
        return str(self._client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)["QueueUrl"])

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]
        except ImportError as error:
            raise NotificationsNotInstalled(channel=self.queue, problem=str(error)) from error

        try:
            yield
        except (BotoCoreError, ClientError) as error:
            raise self._unreachable(" ".join(str(error).split())) from error

    def _unreachable(self, problem: str) -> NotificationsUnreachable:
        return NotificationsUnreachable(channel=self.queue, access=self.access, problem=problem.rstrip("."))
