"""Notifications of an S3-compatible store in a queue of SQS, by Airflow's own connection."""

from __future__ import annotations

import asyncio
import copy
import json
import sys
import threading
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset, AssetWatcher

from tests.object_store import BUCKET, ObjectStore, running_object_store
from tidemark.errors import InvalidArgument, NotificationsNotInstalled, NotificationsUnreachable
from tidemark.hooks import notifications
from tidemark.hooks.notifications import SqsChannel, channel_at, channels_of_pipes
from tidemark.pipes.model.copying import Load
from tidemark.pipes.model.pipes import Pipe
from tidemark.pipes.planning.notifications import announced_files
from tidemark.pipes.worker.notification_directory import DirectoryChannel
from tidemark.pipes.worker.notified import acknowledged_after, channel_facts, notified_files
from tidemark.pipes.worker.sqs_queue import SqsQueue
from tidemark.triggers.notifications import NotificationsEventTrigger

pytestmark = [pytest.mark.airflow, pytest.mark.e2e]

LOAD = Load("db.t", "/lake/db/t", f"s3://{BUCKET}/in", prefix="2024/")


class Queue:
    """A queue that gets an event for each new object of the store's bucket."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        access = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
        self.client: Any = boto3.client("sqs", endpoint_url=store.endpoint, **access)
        self.url: str = self.client.create_queue(QueueName=f"files-{uuid.uuid4()}")["QueueUrl"]
        wanted = ["QueueArn"]
        self.arn = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=wanted)["Attributes"]["QueueArn"]
        told = {"QueueConfigurations": [{"QueueArn": self.arn, "Events": ["s3:ObjectCreated:*"]}]}
        store.client.put_bucket_notification_configuration(Bucket=BUCKET, NotificationConfiguration=told)
        for event in self.client.receive_message(QueueUrl=self.url).get("Messages", ()):  # the store's own test
            assert announced_files(event["Body"], LOAD.location).problem is None
            self.client.delete_message(QueueUrl=self.url, ReceiptHandle=event["ReceiptHandle"])

    def send(self, text: str) -> None:
        self.client.send_message(QueueUrl=self.url, MessageBody=text)

    def count(self) -> tuple[int, int]:
        """Documents that wait, and those that are hidden."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)["Attributes"]
        return int(found[names[0]]), int(found[names[1]])


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    with running_object_store() as store:
        extra = {"endpoint_url": store.endpoint, "region_name": "us-east-1"}
        connection = {"conn_type": "aws", "login": "test", "password": "test", "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", json.dumps(connection))
        yield Queue(store)


def pipe_of(channel: str | None) -> Pipe:
    return Pipe("uid", "p", "COPY INTO t FROM @s", "/q", True, channel, None, datetime.now(UTC))


def test_objects_that_are_put_are_announced_until_they_are_acknowledged(queue: Queue) -> None:
    for name in ("a b.csv", "é%20+.csv", "deep/x.csv"):
        queue.store.put(f"in/2024/{name}", b"1\n")
    queue.store.put("in/2023/old.csv", b"1\n")
    channel = channel_at(queue.url)
    assert channel.waiting() == 4
    found = notified_files(pipe_of(queue.url), LOAD, channel)
    assert sorted(found.files) == ["a b.csv", "deep/x.csv", "é%20+.csv"]
    assert queue.count() == (0, 4)
    with acknowledged_after(channel, found):
        channel.hold(found.handles)
    assert queue.count() == (0, 0)


def test_a_failed_run_leaves_the_documents_which_come_again(queue: Queue) -> None:
    queue.store.put("in/2024/a.csv", b"1\n")
    channel = SqsChannel(queue.arn, visibility_seconds=1)
    with pytest.raises(ZeroDivisionError), acknowledged_after(channel, notified_files(pipe_of(None), LOAD, channel)):
        raise ZeroDivisionError
    again = notified_files(pipe_of(None), LOAD, channel)
    while not again.files:  # hidden for a second
        again = notified_files(pipe_of(None), LOAD, channel)
    assert again.files == ("a.csv",)


def test_more_documents_than_one_request_takes_are_received_and_removed(queue: Queue) -> None:
    for number in range(23):
        queue.send(json.dumps({"files": [f"{number}.csv"]}))
    channel = SqsChannel(queue.url)
    first = notified_files(pipe_of(None), LOAD, channel, most=12)
    second = notified_files(pipe_of(None), LOAD, channel)
    assert (len(first.files), len(second.files)) == (12, 11)
    assert len({*first.files, *second.files}) == 23
    channel.acknowledge((*first.handles, *second.handles))
    assert queue.count() == (0, 0)


def test_a_document_that_is_not_understood_stays_for_the_dead_letters(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    queue.send("hello")
    queue.send(json.dumps({"files": ["a.csv"]}))
    channel = SqsChannel(queue.url)
    found = notified_files(pipe_of(None), LOAD, channel)
    with acknowledged_after(channel, found):
        pass
    assert found.files == ("a.csv",)
    assert queue.count() == (0, 1)
    assert "It stays in the queue" in caplog.text


def test_a_queue_that_does_not_exist_is_a_named_error(queue: Queue) -> None:
    channel = SqsChannel(f"{queue.url}-none")
    with pytest.raises(NotificationsUnreachable, match=r"-none cannot be read.*aws_default"):
        channel.receive(10)
    with pytest.raises(NotificationsUnreachable, match="none"):
        SqsChannel(f"{queue.arn}-none").waiting()


def test_a_receipt_that_is_none_is_a_named_error(queue: Queue) -> None:
    with pytest.raises(NotificationsUnreachable, match="1 of 1 documents are refused by change_message_visibility"):
        SqsChannel(queue.url).hold(["bad"])


def test_a_missing_provider_of_amazon_is_a_named_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "airflow.providers.amazon.aws.hooks.sqs", None)
    with pytest.raises(NotificationsNotInstalled, match=r"airflow-provider-tidemark\[amazon\]"):
        SqsChannel("https://sqs.eu-west-1.amazonaws.com/1/q").receive(1)


def test_a_queue_is_read_by_the_configuration_of_boto3_without_airflow(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "test", "DEFAULT_REGION": "us-east-1"}
    for name, value in {**settings, "ENDPOINT_URL": queue.store.endpoint}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.delenv("AIRFLOW_CONN_AWS_DEFAULT")
    queue.store.put("in/2024/a.csv", b"1\n")
    queue.store.put("in/2024/b.csv", b"1\n")
    for address in (queue.url, queue.arn):
        assert channel_facts(pipe_of(address), lambda pipe: SqsQueue(pipe.notification_channel or "")).outstanding == 2
    channel = SqsQueue(queue.url)
    found = notified_files(pipe_of(queue.url), LOAD, channel)
    assert sorted(found.files) == ["a.csv", "b.csv"]
    with acknowledged_after(channel, found):
        pass
    assert queue.count() == (0, 0)
    gone = channel_facts(pipe_of(queue.url), lambda _: SqsQueue(f"{queue.url}-none"))
    assert gone.outstanding is None
    assert "-none cannot be read" in (gone.problem or "")
    assert "Check the address, boto3's configuration" in (gone.problem or "")


def test_a_missing_boto3_is_a_named_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    facts = channel_facts(pipe_of(None), lambda _: SqsQueue("https://sqs.eu-west-1.amazonaws.com/1/q"))
    assert "airflow-provider-tidemark[amazon]" in (facts.problem or "")


def test_pipes_have_the_channel_of_their_address() -> None:
    channel_of = channels_of_pipes({}, "aws_other")
    assert channel_of(pipe_of(None)) is None
    assert isinstance(channel_of(pipe_of("/data/notes")), DirectoryChannel)
    found = channel_of(pipe_of("arn:aws:sqs:us-east-1:123456789012:q"))
    assert isinstance(found, SqsChannel)
    assert found.aws_conn_id == "aws_other"


@pytest.mark.parametrize("address", ["arn:aws:sns:us-east-1:123456789012:topic", "notes", "s3://key:secret@bucket/x"])
def test_an_address_that_is_no_channel_is_refused(address: str) -> None:
    with pytest.raises(InvalidArgument, match="notification_channel"):
        channel_at(address)


async def _events(trigger: NotificationsEventTrigger, count: int) -> list[Any]:
    events = []
    async for event in trigger.run():
        events.append(event.payload)
        if len(events) == count:
            break
    return events


def test_a_watcher_announces_what_waits_and_takes_nothing(queue: Queue) -> None:
    queue.send(json.dumps({"files": ["a.csv"]}))
    trigger = NotificationsEventTrigger(channel=queue.url, poll_interval=0.05, renew_after=0.2)
    assert asyncio.run(asyncio.wait_for(_events(trigger, 2), 30)) == [{"channel": queue.url, "waiting": 1}] * 2
    assert queue.count() == (1, 0)


def test_a_watcher_waits_while_the_channel_is_away(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    queue.send("x")
    trigger = NotificationsEventTrigger(channel=queue.url, poll_interval=0.05)
    opened, tries = notifications.channel_at, iter((True, False))

    def away_once(*arguments: Any) -> Any:
        if next(tries, False):
            raise NotificationsUnreachable(channel="c", access="a", problem="away")
        return opened(*arguments)

    monkeypatch.setattr(notifications, "channel_at", away_once)
    assert asyncio.run(asyncio.wait_for(_events(trigger, 1), 30)) == [{"channel": queue.url, "waiting": 1}]


class HangingChannel:
    """A channel that answers when it is let go."""

    def __init__(self) -> None:
        self.looks = 0
        self.let_go = threading.Event()

    def waiting(self) -> int:
        self.looks += 1
        self.let_go.wait(30)
        return 3


def test_a_dag_with_the_watcher_can_be_copied() -> None:
    """As `dag.partial_subset` copies it."""
    trigger = NotificationsEventTrigger(channel="s3://lake/in")
    with DAG("watching", schedule=[Asset("in", watchers=[AssetWatcher(name="w", trigger=trigger)])]) as dag:
        EmptyOperator(task_id="load")
    assert dag.partial_subset("load").task_ids == ["load"]
    assert copy.deepcopy(trigger).serialize() == trigger.serialize()


def test_a_channel_that_hangs_keeps_one_thread_of_its_watcher(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = HangingChannel()
    monkeypatch.setattr(notifications, "channel_at", lambda *_: channel)
    monkeypatch.setattr("tidemark.triggers.notifications.LONGEST_POLL", 0.02)
    trigger = NotificationsEventTrigger(channel="/notes", poll_interval=0.02)

    async def watched() -> list[Any]:
        found = asyncio.create_task(_events(trigger, 1))
        await asyncio.sleep(0.5)  # many polls
        assert channel.looks == 1
        channel.let_go.set()
        return await found

    assert asyncio.run(asyncio.wait_for(watched(), 60)) == [{"channel": "/notes", "waiting": 3}]


def test_a_queue_that_hangs_is_given_up_as_its_connection_or_the_patience_says(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"conn_type": "aws", "login": "test", "password": "test", "extra": {"config_kwargs": {"read_timeout": 7}}}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_OTHER", json.dumps(given))
    config = SqsChannel("arn:aws:sqs:us-east-1:123456789012:q", "aws_other").open_client().meta.config
    assert (config.connect_timeout, config.read_timeout, config.retries["total_max_attempts"]) == (5, 7, 3)
