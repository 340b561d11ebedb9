"""The common part of watchers: what they keep between triggerers, and their words in the log."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from airflow.sdk.exceptions import AirflowRuntimeError
from airflow.triggers.base import BaseEventTrigger

__all__ = ["SETTLED", "Watcher"]

SETTLED = 5.0  # seconds in which the triggerer has passed an event on
_STATE = "tidemark.announced"  # the key in the asset's state store


class Watcher(BaseEventTrigger):
    """A trigger of an AssetWatcher. The asset's state store keeps its last announcement."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._problem: str | None = None

    @property
    @abstractmethod
    def subject(self) -> str:
        """The subject of the watch, as the log calls it."""

    @property
    def watch(self) -> str:
        """The id of the watcher. A DAG that is resumed has a new one."""
        return str(self.trigger_id)

    async def recall(self) -> Any:
        """The last announcement; None if Airflow has none, or does not answer: then a repetition is better."""
        if self.asset_state_store is None:
            return None
        try:
            return await self.asset_state_store.aget(_STATE)
        except (AirflowRuntimeError, ValueError) as error:
            self.log.warning("%s: the last announcement cannot be recalled: %s", self.subject, error)
            return None

    async def keep(self, announced: Mapping[str, Any]) -> None:
        """Keep the last announcement, in plain values."""
        if self.asset_state_store is None:
            return
        try:
            await self.asset_state_store.aset(_STATE, dict(announced))
        except (AirflowRuntimeError, ValueError) as error:
            self.log.warning("%s: the last announcement cannot be kept: %s", self.subject, error)

    def say(self, problem: str | None) -> None:
        """Log a problem once for each message, and its end."""
        if problem == self._problem:
            return
        self._problem = problem
        if problem is None:
            self.log.info("%s can be read again.", self.subject)
        else:
            self.log.error("%s cannot be watched, looking again: %s", self.subject, problem)
