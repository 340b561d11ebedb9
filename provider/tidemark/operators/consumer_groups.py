"""Consumer groups of a change stream: independent readers, each with its own progress."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from tidemark.change_streams.planning.starts import GroupStart, start_of
from tidemark.errors import InvalidArgument
from tidemark.operators._base import TidemarkOperator, is_left_out, one_of
from tidemark.operators._constants import check_constants, is_constant
from tidemark.streams.planning.names import require_name

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["AlterConsumerGroupOperator", "CreateConsumerGroupOperator"]

_ACTIONS = ("pause", "resume", "reset")


class CreateConsumerGroupOperator(TidemarkOperator):
    """Creates a consumer group of a change stream, or keeps an existing one and its progress.

    A second run changes nothing. Returns {change_stream, consumer_group, start}. Raises ChangeStreamNotFound,
    OutOfRange, InvalidArgument.

    :param change_stream: its name. (templated)
    :param consumer_group: a name of your own. (templated)
    :param start: where it begins: `earliest`, `now`, or a time with a zone that is within the retention. (templated)
    """

    template_fields: Sequence[str] = ("change_stream", "consumer_group", "start", "conn_id")

    def __init__(
        self, *, change_stream: str, consumer_group: str, start: datetime | str = "earliest", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.change_stream = change_stream
        self.consumer_group = consumer_group
        self.start = start
        check_constants(self, consumer_group=lambda argument, name: require_name(name, argument), start=start_of)

    def execute(self, context: Context) -> dict[str, Any]:
        """The group as it stands."""
        from tidemark.change_streams.worker.groups import create_group

        group = create_group(
            self.hook.open_store(),
            self.change_stream,
            self.consumer_group,
            start_of("start", self.start),
            if_not_exists=True,
        )
        return {"change_stream": self.change_stream, "consumer_group": group.name, "start": group.start.isoformat()}


class AlterConsumerGroupOperator(TidemarkOperator):
    """Pauses, resumes or resets a consumer group. After a reset it is another group of the same name.

    A paused group gets no new chunks; open chunks continue. After `reset` the records from `start` on are delivered
    again. To sinks they are those of another application, which is the purpose of a reset. A second run of pause or
    resume changes nothing, one of reset sets it back again. Returns {change_stream, consumer_group, action}. Raises
    ChangeStreamNotFound, ConsumerGroupNotFound, OutOfRange, InvalidArgument.

    :param change_stream: its name. (templated)
    :param consumer_group: name of the group. (templated)
    :param action: `pause`, `resume` or `reset`. (templated)
    :param start: where a reset begins: `earliest`, `now`, or a time with a zone. (templated)
    """

    template_fields: Sequence[str] = ("change_stream", "consumer_group", "action", "start", "conn_id")

    def __init__(
        self,
        *,
        change_stream: str,
        consumer_group: str,
        action: str,
        start: datetime | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.change_stream = change_stream
        self.consumer_group = consumer_group
        self.action = action
        self.start = start
        check_constants(self, action=partial(one_of, _ACTIONS), start=_start_or_none)
        if is_constant([action, start]):
            _start_for(one_of(_ACTIONS, "action", action), start)

    def execute(self, context: Context) -> dict[str, Any]:
        """The act that was done."""
        from tidemark.change_streams.worker.groups import pause_group, reset_group, resume_group

        action, store = one_of(_ACTIONS, "action", self.action), self.hook.open_store()
        start = _start_for(action, self.start)
        if start is not None:
            reset_group(store, self.change_stream, self.consumer_group, start)
        elif action == "pause":
            pause_group(store, self.change_stream, self.consumer_group)
        else:
            resume_group(store, self.change_stream, self.consumer_group)
        return {"change_stream": self.change_stream, "consumer_group": self.consumer_group, "action": action}


def _start_or_none(argument: str, value: datetime | str | None) -> GroupStart | None:
    return None if value is None or is_left_out(value) else start_of(argument, value)


def _start_for(action: str, start: datetime | str | None) -> GroupStart | None:
    """The point at which a reset begins; None without a reset. Raises InvalidArgument."""
    if (action == "reset") == is_left_out(start):
        raise InvalidArgument(argument="start", value=start, problem="a reset needs it, and nothing else has it")
    return _start_or_none("start", start)
