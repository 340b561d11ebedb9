"""The common part of the notifiers: the report passes to another notifier of Airflow's, also in the triggerer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseNotifier

from tidemark.errors import InvalidArgument
from tidemark.hooks.tidemark import DEFAULT_CONN_ID

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["TellingNotifier"]


class TellingNotifier(BaseNotifier):
    """Looks, and passes what it found to the notifier class at the dotted path `tell`, if a message is due."""

    def __init__(
        self,
        *,
        tell: str | None = None,
        tell_kwargs: Mapping[str, Any] | None = None,
        conn_id: str = DEFAULT_CONN_ID,
        context: Context | None = None,
    ) -> None:
        super().__init__(context)
        self.tell = tell
        self.tell_kwargs = dict(tell_kwargs or {})
        self.conn_id = conn_id

    @abstractmethod
    def report(self, context: Context) -> Mapping[str, Any] | None:
        """The further variables of the other notifier's templates; None if no message is due. May block."""

    def notify(self, context: Context) -> None:
        """Looks and notifies. Raises what `report` raises, InvalidArgument, errors of the other notifier."""
        told = self.report(context)
        if told is not None and self.tell is not None:
            self._notifier(self.tell)({**context, **told})

    async def async_notify(self, context: Context) -> None:
        """As `notify`, by the other notifier's `async_notify`, without blocking the event loop."""
        from asgiref.sync import sync_to_async

        told = await sync_to_async(self.report, thread_sensitive=False)(context)
        if told is not None and self.tell is not None:
            notifier = self._notifier(self.tell)
            notifier.context = {**context, **told}  # type: ignore[typeddict-item]
            await notifier

    def _notifier(self, path: str) -> BaseNotifier:
        try:
            kind = resolve_name(path)
        except (ImportError, AttributeError, ValueError) as error:
            raise InvalidArgument(argument="tell", value=path, problem=f"it cannot be imported: {error}") from error
        if not (isinstance(kind, type) and issubclass(kind, BaseNotifier)):
            raise InvalidArgument(argument="tell", value=path, problem="it is not a notifier class")
        return kind(**self.tell_kwargs)
