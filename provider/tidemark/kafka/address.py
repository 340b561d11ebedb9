"""How the brokers of a Kafka cluster are reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["KafkaAddress", "is_secret"]

_SECRET = ("password", "secret", "key.pem", "oauthbearer.config", "oauthbearer.token", "jaas.config")


def is_secret(setting: str) -> bool:
    """Whether the value of a client's setting must be shown nowhere."""
    return any(word in setting for word in _SECRET)


@dataclass(frozen=True)
class KafkaAddress:
    """The brokers, and settings of librdkafka that say how to reach them. Nothing prints a setting."""

    brokers: str  # bootstrap.servers
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)  # security.protocol, sasl.password …
    conn_id: str | None = field(default=None, compare=False)  # the connection that said all this, for messages

    def without_secrets(self, text: str) -> str:
        """A text of the client, in which the secrets of this address are replaced by asterisks."""
        for secret in sorted((v for name, v in self.settings.items() if v and is_secret(name)), key=len, reverse=True):
            text = text.replace(secret, "***")
        return text
