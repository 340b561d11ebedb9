"""The common part of the sensors: the wait in the triggerer instead of on a worker, and the errors that end it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseSensorOperator
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSensorTimeout, AirflowSkipException

from tidemark.errors import PASSING, TidemarkError, from_record
from tidemark.hooks.tidemark import DEFAULT_CONN_ID
from tidemark.model.jobs import ErrorRecord
from tidemark.operators._error_log import useful_line_first
from tidemark.operators._retries import set_retry_policy

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.triggers._waiting import WaitTrigger

__all__ = ["StreamSensor"]

_GRACE = timedelta(minutes=5)  # that Airflow's own timeout leaves the trigger, which keeps the deadline itself


class StreamSensor(BaseSensorOperator):
    """A sensor that looks at streams, on the worker or, with `deferrable=True`, in the triggerer.

    Deferred or not, `timeout` counts from the first look of the attempt. If it is deferred, the deadline is a time of
    the wall clock, which a restart of the triggerer does not move. Until then it waits for a storage or a store that
    does not answer. On a worker that fails the attempt. Any other error of Tidemark fails the task at once and for
    good, as no retry helps. `soft_fail`, `never_fail` and `silent_fail` mean the same as for every sensor.

    :param deferrable: wait in the triggerer; default: `[operators] default_deferrable`.
    :param conn_id: Airflow connection of type `tidemark`. (templated)
    """

    hopeless: ClassVar[Collection[type[BaseException]]] = (TidemarkError,)
    passing: ClassVar[Collection[type[BaseException]]] = PASSING  # storage and store may answer again

    def __init__(self, *, deferrable: bool | None = None, conn_id: str = DEFAULT_CONN_ID, **kwargs: Any) -> None:
        set_retry_policy(kwargs, hopeless=self.hopeless, passing=self.passing)
        super().__init__(**kwargs)
        if deferrable is None:
            deferrable = conf.getboolean("operators", "default_deferrable", fallback=False)
        self.deferrable = deferrable
        self.conn_id = conn_id

    @abstractmethod
    def trigger(self, **waiting: Any) -> WaitTrigger:
        """The trigger that waits in its place; `waiting` are WaitTrigger's own arguments."""

    def returned(self, value: Any) -> Any:
        """The task's result for the value of the trigger's event."""
        return value

    @useful_line_first
    def execute(self, context: Context) -> Any:
        """Wait on the worker; or look once, and defer if there is nothing yet."""
        if not self.deferrable:
            return super().execute(context)
        end = datetime.now(UTC) + timedelta(seconds=self.timeout)
        looked = self._first_look(context)
        if looked:
            return getattr(looked, "xcom_value", None)
        if self.timeout <= 0:
            raise self._over(f"The condition is not met, and the timeout is {self.timeout} seconds.")
        return self.wait_until(end)

    def wait_until(self, end: datetime) -> Any:
        """Defer to the trigger until then."""
        longest = self.timeout if self.max_wait is None else self.max_wait.total_seconds()
        waits = self.trigger(
            conn_id=self.conn_id,
            end=end,
            poll_interval=max(self.poke_interval, 0.1),
            longest_interval=longest if self.exponential_backoff else None,
            keep_on=self.silent_fail,
        )
        self.log.info("Waiting in the triggerer until %s.", end.isoformat(timespec="seconds"))
        return self.defer(
            trigger=waits,
            method_name="execute_complete",
            kwargs={"end": end.isoformat()},
            timeout=max(end - datetime.now(UTC), timedelta()) + _GRACE,
        )

    @useful_line_first
    def execute_complete(self, context: Context, event: dict[str, Any], end: str | None = None) -> Any:
        """The trigger has fired. Raises the error that it met, AirflowSensorTimeout where the time was over.

        `end`: until when the task waits; None where an older release deferred it.
        """
        if event["status"] == "found":
            self.log.info("Found: %s", event["value"])
            return self.returned(event["value"])
        if event["status"] == "timeout":
            last = f" At the last look: {event['problem']}" if event["problem"] else ""
            raise self._over(f"Sensor has timed out after {self.timeout} seconds.{last}")
        error = event["error"]
        failure = AirflowFailException(event["message"]) if error is None else from_record(ErrorRecord(**error))
        if self.never_fail:
            raise AirflowSkipException("Skipping due to never_fail is set to True.") from failure
        raise failure

    def _first_look(self, context: Context) -> Any:
        try:
            return self.poke(context)
        except PASSING as error:
            self.log.warning("The state is unknown now, and the triggerer asks again: %s", error)
        except AirflowSkipException:
            raise
        except (TidemarkError, AirflowException, OSError) as error:
            if not self.silent_fail:
                if self.never_fail:
                    raise AirflowSkipException("Skipping due to never_fail is set to True.") from error
                raise
            self.log.error("The first look failed: %s", error)
        return None

    def _over(self, message: str) -> AirflowSensorTimeout | AirflowSkipException:
        return AirflowSkipException(message) if self.soft_fail or self.never_fail else AirflowSensorTimeout(message)
