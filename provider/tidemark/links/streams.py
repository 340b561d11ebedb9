"""Links from a task to the page "Tidemark" and to Spark's page, shown from the task's start."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from airflow.sdk import BaseHook, BaseOperatorLink
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowNotFoundException, AirflowRuntimeError

from tidemark.hooks.tidemark import DEFAULT_CONN_ID

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context
    from airflow.sdk.types import TaskInstanceKey

__all__ = ["SparkUiLink", "WindowLink", "push_links"]

SPARK_UI = "spark_ui_url"

log = logging.getLogger(__name__)


class WindowLink(BaseOperatorLink):
    """The stream on the page "Tidemark", with the window of this task's run."""

    name = "Tidemark window"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The URL below `[api] base_url`, else relative to Airflow's root. Arguments must be rendered."""
        map_index = -1 if ti_key.map_index is None else ti_key.map_index
        conn_id = getattr(operator, "conn_id", DEFAULT_CONN_ID)
        asked = {
            "stream": _first_stream(operator),
            "connection": "" if conn_id == DEFAULT_CONN_ID else conn_id,
            "dag_id": ti_key.dag_id,
            "run_id": ti_key.run_id,
            "task_id": getattr(operator, "transaction", None) or ti_key.task_id,
            "map_index": "" if map_index < 0 else map_index,
        }
        base = (conf.get("api", "base_url", fallback="") or "").rstrip("/")
        page = f"{base}/plugin/tidemark" if base else "plugin/tidemark"
        return f"{page}?{urlencode({name: value for name, value in asked.items() if value != ''})}"


class SparkUiLink(BaseOperatorLink):
    """Spark's own page, if the connection names one: a master's, a history server's or a Connect server's."""

    name = "Spark UI"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The URL of Spark's page. It is empty, so that no link is shown, if the connection has no http or https
        address. The same for an address with a user, since everybody can read links.
        """
        try:
            connection = BaseHook.get_connection(getattr(operator, "conn_id", DEFAULT_CONN_ID))
        except AirflowNotFoundException:
            return ""
        url = str(connection.extra_dejson.get(SPARK_UI) or "").strip()
        try:
            parts = urlsplit(url)
        except ValueError as error:
            log.warning("%s of the connection is no URL: %s", SPARK_UI, error)
            return ""
        return url if parts.scheme in ("http", "https") and "@" not in parts.netloc else ""


def push_links(operator: BaseOperator, context: Context) -> None:
    """Stores the operator's links now. Airflow stores them at a task's end. A link that cannot be stored is logged."""
    instance: Any = context["ti"]
    for link in operator.operator_extra_links:
        if not isinstance(link, WindowLink | SparkUiLink):
            continue
        try:
            if url := link.get_link(operator, ti_key=instance):
                instance.xcom_push(key=link.xcom_key, value=url)
        except AirflowRuntimeError as error:
            log.warning("The link %r is not shown before the end of the task: %s", link.name, error)


def _first_stream(operator: BaseOperator) -> str:
    """The operator's first stream; empty if it names none, and the page then asks the transaction."""
    named = getattr(operator, "streams", None) or getattr(operator, "stream", None) or ""
    if isinstance(named, str):
        return named
    return str(named[0]) if isinstance(named, Sequence) and named else ""
