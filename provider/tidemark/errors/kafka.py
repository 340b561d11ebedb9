"""Errors of Kafka topics and their brokers."""

from __future__ import annotations

from tidemark.errors.tree import TidemarkError

__all__ = [
    "BrokerError",
    "BrokerRefused",
    "BrokerUnreachable",
    "KafkaClientNotInstalled",
    "OffsetOutOfRange",
    "TopicNotFound",
    "TopicPartitionsChanged",
    "TopicRecreated",
]


class BrokerError(TidemarkError):
    """{message}"""


class BrokerUnreachable(BrokerError):
    """The brokers {brokers} gave no answer about {what} in {seconds:g} seconds: {problem}. Records that were read stay
    read, and no offset was moved. If trying again does not help, check bootstrap.servers and the listeners.
    """


class BrokerRefused(BrokerError):
    """The brokers {brokers} refused {what}: {problem}. Check security.protocol, user and password of the connection,
    and that the user may describe and read the topic.
    """


class KafkaClientNotInstalled(BrokerError):
    """Kafka's client is not installed here: {problem}. Run pip install 'airflow-provider-tidemark[kafka]'."""


class TopicNotFound(BrokerError):
    """The brokers {brokers} have no topic {topic!r}. Check the name, and that the user may describe the topic."""


class TopicRecreated(BrokerError):
    """Topic {topic} was deleted and recreated: its id is {found}, and was {expected}. Offsets of the old one mean
    nothing in it. Choose a new start.
    """


class TopicPartitionsChanged(BrokerError):
    """Topic {topic} has the partitions {found}, and {expected} were expected. Nothing was read. Kafka only adds
    partitions: name a start for new ones. If some are missing, the topic was recreated.
    """


class OffsetOutOfRange(BrokerError):
    """Partition {partition} of topic {topic} does not hold offset {offset}: it {problem}. It holds offsets from
    {earliest} up to {latest}. Choose a new start for the partition.
    """
