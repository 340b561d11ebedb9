"""A Kafka broker of the tests' own (KRaft, one process), on free ports of this machine, in a directory that goes."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from tests.ports import free_port
from tidemark.kafka.address import KafkaAddress

__all__ = ["PASSWORD", "READER", "STRANGER", "KafkaBroker", "kafka_or_skip", "missing"]

JARS = Path(__file__).parents[1] / ".cache" / "kafka"  # put there by .ci/fetch-kafka
READER, STRANGER = "reader", "stranger"  # one may read everything, the other nothing
PASSWORD = "p@ss w/rd?%"
_HEAP = "256m"
_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:ReservedCodeCacheSize=64m", f"-Xmx{_HEAP}")
_SILENT: Mapping[str, Any] = {"log_level": 0}  # clients outlive a broker that was killed
_PATIENCE = 60  # seconds until it answers, on a machine that is busy
_USERS = " ".join(f'user_{name}="{PASSWORD}"' for name in (READER, STRANGER))
_SETTINGS: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAIN",
    "listener.security.protocol.map": "PLAIN:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.login.plain.sasl.jaas.config": (
        f"org.apache.kafka.common.security.plain.PlainLoginModule required {_USERS};"
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:ANONYMOUS;User:{READER}",
    "auto.create.topics.enable": "true",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "broker.session.timeout.ms": "3000",  # until then one that was killed may not come again
    "broker.heartbeat.interval.ms": "500",
    "log.cleaner.enable": "false",
    "num.network.threads": "2",
    "num.io.threads": "2",
    "background.threads": "1",
}


@dataclass
class KafkaBroker:
    """A broker that answers on 127.0.0.1: to everybody at `port`, to those who log in at `login_port`."""

    home: Path
    port: int = field(default_factory=free_port)
    login_port: int = field(default_factory=free_port)
    controller_port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> KafkaAddress:
        return KafkaAddress(f"127.0.0.1:{self.port}")

    def address_of(self, user: str, password: str = PASSWORD) -> KafkaAddress:
        login = {"sasl.mechanism": "PLAIN", "sasl.username": user, "sasl.password": password}
        return KafkaAddress(f"127.0.0.1:{self.login_port}", {"security.protocol": "SASL_PLAINTEXT", **login})

    def start(self) -> None:
        """Returns when it answers; what was sent before is still there."""
        log = (self.home / "log").open("ab")
        command = ["java", *_JVM, "-cp", f"{JARS}/*", "kafka.Kafka", str(self.home / "server.properties")]
        plain = {name: value for name, value in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}
        self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=plain)
        end = time.monotonic() + _PATIENCE
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > end:
                said = (self.home / "log").read_text()[-3000:]
                raise RuntimeError(f"Kafka did not start, its code is {self.process.poll()}: {said}")

    def kill(self) -> None:
        """As if the power had gone."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Connections stay open, and nothing answers."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    @cached_property
    def admin(self) -> Any:
        """One for all: with it, what it was asked would go."""
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.address.brokers, **_SILENT})

    def create(self, topic: str, partitions: int = 1, **settings: str) -> None:
        from confluent_kafka.admin import NewTopic

        config = {name.replace("_", "."): value for name, value in settings.items()}
        self.admin.create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result(_PATIENCE)

    def producer(self, **settings: Any) -> Any:
        from confluent_kafka import Producer

        more = {name.replace("_", "."): value for name, value in settings.items()}
        return Producer({"bootstrap.servers": self.address.brokers, "linger.ms": 0, **_SILENT, **more})

    def send(self, topic: str, values: Sequence[bytes | None], partition: int = 0, **facts: Any) -> None:
        """Each value as a record, in this order."""
        producer = self.producer()
        for value in values:
            producer.produce(topic, value, partition=partition, **facts)
        assert producer.flush(_PATIENCE) == 0

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException

        try:
            return bool(self.admin.list_topics(timeout=1).brokers)
        except KafkaException:
            return False


def missing() -> str | None:
    """Why no broker can be started here, in words that help; None if one can."""
    if not [*JARS.glob("kafka_*.jar")]:
        return "Kafka's server is not in .cache/kafka: run .ci/fetch-kafka"
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        return "Kafka's client is not installed: run make setup"
    return None


@contextmanager
def kafka_or_skip() -> Iterator[KafkaBroker]:
    """A broker for a fixture; if none can be started its tests are skipped, with the reason."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="tidemark-kafka-", ignore_cleanup_errors=True) as home:
        broker = KafkaBroker(Path(home))
        _prepare(broker)
        try:
            broker.start()
            yield broker
        finally:
            broker.kill()


def _prepare(broker: KafkaBroker) -> None:
    """What `kafka-storage format` writes; it would start another JVM."""
    data = broker.home / "data"
    data.mkdir()
    of_this_node = [
        "version=1",
        "cluster.id=dGlkZW1hcmstdGVzdHMtMQ",
        "node.id=1",
        "directory.id=dGlkZW1hcmstZGlyLS0tMQ",
    ]
    (data / "meta.properties").write_text("\n".join(of_this_node) + "\n")
    listeners = {"PLAIN": broker.port, "LOGIN": broker.login_port, "CONTROLLER": broker.controller_port}
    bound = [f"{name}://127.0.0.1:{port}" for name, port in listeners.items()]
    settings = {
        **_SETTINGS,
        "listeners": ",".join(bound),
        "advertised.listeners": ",".join(bound[:2]),
        "controller.quorum.voters": f"1@127.0.0.1:{broker.controller_port}",
        "log.dirs": str(data),
    }
    lines = "".join(f"{name}={value}\n" for name, value in settings.items())
    (broker.home / "server.properties").write_text(lines)


if __name__ == "__main__":  # how long a broker takes to come and go
    began = time.monotonic()
    with kafka_or_skip() as one:
        print(f"up after {time.monotonic() - began:.2f} s")
        began = time.monotonic()
        one.create("t")
        one.send("t", [b"1"])
        print(f"a topic and a record: {time.monotonic() - began:.2f} s")
