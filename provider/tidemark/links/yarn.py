"""The link from a task to its application in YARN."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperatorLink, get_current_context
from airflow.sdk.exceptions import AirflowRuntimeError

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

__all__ = ["YarnLink", "show_application"]

log = logging.getLogger(__name__)


class YarnLink(BaseOperatorLink):
    """The page of the driver's application in YARN, from its submission on."""

    name = "YARN application"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The URL; empty, so that no link is shown, for a driver elsewhere."""
        return str(getattr(operator, "application_page", ""))


def show_application(page: str) -> None:
    """Stores the link of the running task now; Airflow stores links at a task's end. A link that cannot be stored is
    logged.
    """
    try:
        instance: Any = get_current_context()["ti"]
        instance.xcom_push(key=YarnLink().xcom_key, value=page)
    except (AirflowRuntimeError, RuntimeError) as error:
        log.warning("The link %r is not shown before the end of the task: %s", YarnLink.name, error)
