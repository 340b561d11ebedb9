"""Clients of librdkafka, and what they say of their brokers, as errors of ours."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidemark.errors import (
    BrokerError,
    BrokerRefused,
    BrokerUnreachable,
    InvalidArgument,
    KafkaClientNotInstalled,
    TopicNotFound,
)

if TYPE_CHECKING:
    from tidemark.kafka.address import KafkaAddress

__all__ = ["Troubles", "is_passing", "named", "open_admin", "open_consumer"]

_NO_GROUP = "tidemark-without-a-group"  # the client wants a name; no group of that name is joined or stored
_OWN: Mapping[str, Any] = {
    "group.id": _NO_GROUP,
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "allow.auto.create.topics": False,
    "fetch.queue.backoff.ms": 20,  # of a full queue: who reads it is quick
    "fetch.wait.max.ms": 50,  # at the end: a bounded read wants no records that are still to come
}
_QUIET: Mapping[str, Any] = {"log_level": 2}  # it would log each attempt to connect; the last one is in our error
_REFUSALS = frozenset(
    {
        "_AUTHENTICATION", "_SSL", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM", "ILLEGAL_SASL_STATE",
        "SECURITY_DISABLED", "TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED",
    }
)  # fmt: skip
_NO_TOPIC = frozenset({"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "TOPIC_EXCEPTION", "UNKNOWN_TOPIC_ID"})
_PASSING = frozenset({"_TRANSPORT", "_TIMED_OUT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_TIMED_OUT_QUEUE"})
_log = logging.getLogger(__name__)


class Troubles:
    """The reports of a client on its connections: the last trouble, and the last refusal."""

    def __init__(self) -> None:
        self.last: Any = None
        self.refusal: Any = None

    def __call__(self, error: Any) -> None:
        """Called by the client while it is polled."""
        self.last = error
        if error.name() in _REFUSALS:
            self.refusal = error


def open_consumer(address: KafkaAddress, troubles: Troubles, *, queue_bytes: int) -> Any:
    """A consumer that joins no group, stores no offset, creates no topic and reads what was committed.

    Raises KafkaClientNotInstalled; InvalidArgument for settings that the client refuses.
    """
    queued = {"queued.max.messages.kbytes": max(1024, queue_bytes // 1024)}
    return _opened(_client().Consumer, address, {**_OWN, **queued, "error_cb": troubles})


def open_admin(address: KafkaAddress, troubles: Troubles) -> Any:
    """A client that describes topics. Raises as `open_consumer`."""
    return _opened(_client().admin.AdminClient, address, {"error_cb": troubles})


def named(error: Any, address: KafkaAddress, *, what: str, topic: str, seconds: float) -> BrokerError:
    """The error of ours for one of the client's."""
    if error.name() in _NO_TOPIC:
        return TopicNotFound(brokers=address.brokers, topic=topic)
    problem = address.without_secrets(" ".join(str(error.str()).split()) or error.name())
    if error.name() in _REFUSALS:
        return BrokerRefused(brokers=address.brokers, what=what, problem=problem)
    return BrokerUnreachable(brokers=address.brokers, what=what, problem=problem, seconds=seconds)


def is_passing(error: Any) -> bool:
    """Whether it may be over in a moment."""
    return error.name() in _PASSING or bool(error.retriable())


def _client() -> Any:
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError as error:
        raise KafkaClientNotInstalled(problem=str(error)) from error
    return confluent_kafka


def _opened(kind: Any, address: KafkaAddress, own: Mapping[str, Any]) -> Any:
    settings = {**address.settings, "bootstrap.servers": address.brokers, **own, **_QUIET, "logger": _log}
    try:
        return kind(settings)
    except (_client().KafkaException, ValueError, TypeError) as error:
        said = error.args[0] if error.args else error
        problem = address.without_secrets(str(said.str() if hasattr(said, "str") else said))
        raise InvalidArgument(argument="kafka_conn_id", value=address.conn_id, problem=problem) from None
