"""Changes of a channel by hand: open it, give it another token, drop it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidArgument
from tidemark.operators._base import flag_of, is_left_out, key_of, one_of, owner_of
from tidemark.operators._channels import channel_of, note_landing
from tidemark.operators._constants import check_constants, is_constant
from tidemark.operators._spark import SparkOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["AlterChannelOperator"]

_ACTIONS = ("open", "set_token", "drop")


class AlterChannelOperator(SparkOperator):
    """Opens a channel, sets its committed offset token, or drops it.

    `open` creates the channel or fences its writer, and keeps the token unless `token` replaces it. `set_token` fences
    nobody. `drop` removes the channel with its token, also from a writer that has it open. A retry of `set_token` or
    `drop` changes nothing; one of `open` fences once more. Returns {table, channel, existed, token_before, token}.
    Raises TableNotFound, TableNotSupported, ChannelNotFound, ChannelTokenLost, CommitsMayBeLost, InvalidArgument.

    :param table: the table of the channel. (templated)
    :param channel: the channel's name. (templated)
    :param action: open, set_token or drop. (templated)
    :param token: the new committed token; None keeps it for open, and removes it for set_token. (templated)
    :param only_writer: whether no other program writes the table during the run. On S3 it must be True.
        (templated)
    """

    template_fields: Sequence[str] = ("table", "channel", "action", "token", "only_writer", "conn_id")

    def __init__(
        self,
        *,
        table: str,
        channel: str,
        action: str,
        token: str | None = None,
        only_writer: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.channel = channel
        self.action = action
        self.token = token
        self.only_writer = only_writer
        check_constants(self, channel=channel_of, action=_action_of, token=_token_of, only_writer=flag_of)
        if is_constant([action, token]):
            _require_use(action, _token_of("token", token))

    def execute(self, context: Context) -> dict[str, Any]:
        """The channel's token before and after."""
        from tidemark.channels.model.jobs import ALTER_CHANNEL, AlterChannel, ChannelAction
        from tidemark.model.codec import to_plain

        action = ChannelAction(_action_of("action", self.action))
        token = _token_of("token", self.token)
        _require_use(self.action, token)
        self.hook.table_uri(self.table)  # a typo is found before a JVM starts
        request = AlterChannel(
            lake_root=self.hook.settings.lake_root,
            table=self.table,
            channel=channel_of("channel", self.channel),
            action=action,
            writer=owner_of(context),
            token=token,
            only_writer=flag_of("only_writer", self.only_writer),
        )
        done = self.runtime().run_job(ALTER_CHANNEL, request, key=key_of(context))
        note_landing(self.hook, self.table, key_of(context), {"altered": 1})
        self.log.info("Token of %s of %s: %r, then %r.", self.channel, self.table, done.token_before, done.token)
        return {"table": self.table, "channel": self.channel, **to_plain(done)}


def _action_of(argument: str, value: str) -> str:
    return one_of(_ACTIONS, argument, value)


def _token_of(argument: str, value: object) -> str | None:
    """A token; None for none, also as a template renders it. Raises InvalidArgument."""
    if is_left_out(value):
        return None
    if not isinstance(value, str):
        raise InvalidArgument(argument=argument, value=value, problem="a token is a text")
    return value


def _require_use(action: str, token: str | None) -> None:
    if _action_of("action", action) == "drop" and token is not None:
        raise InvalidArgument(argument="token", value=token, problem="a dropped channel has none")
