"""The plugin that Airflow finds by its entry point. Importing it loads no web framework: every worker does so."""

from __future__ import annotations

from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from airflow.sdk.configuration import conf
from airflow.sdk.plugins_manager import AirflowPlugin

__all__ = ["TABS", "URL_PREFIX", "URL_ROUTE", "TidemarkPlugin"]

URL_PREFIX = "/tidemark"
URL_ROUTE = "tidemark"
TABS = {
    "dag": "dag_id={DAG_ID}",
    "dag_run": "dag_id={DAG_ID}&run_id={RUN_ID}",
    "task_instance": "dag_id={DAG_ID}&run_id={RUN_ID}&task_id={TASK_ID}&map_index={MAP_INDEX}",
}
"""Airflow's pages that have a tab of ours, with the question of each. Airflow fills the places in braces."""


class TidemarkPlugin(AirflowPlugin):
    """The page "Tidemark" among Airflow's own, and the app behind it, mounted at `/tidemark`.

    The app is built when the API server asks for it. Lists are the instance's own: Airflow removes from them.
    """

    name = "tidemark"

    def __init__(self) -> None:
        self.external_views = [
            {
                "name": "Tidemark",
                "href": f"{_base_path()}{URL_PREFIX}/",
                "destination": "nav",
                "category": "browse",
                "url_route": URL_ROUTE,
            },
            *(_tab(destination, question) for destination, question in TABS.items()),
        ]

    @cached_property
    def fastapi_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The one app, with Airflow's access checks on each of its routes."""
        from tidemark.plugins.monitor.app import build_app

        return [{"name": "Tidemark", "app": build_app(), "url_prefix": URL_PREFIX}]


def _tab(destination: str, question: str) -> dict[str, str]:
    """A tab has a route of its own: Airflow finds views by their routes alone."""
    return {
        "name": "Tidemark",
        "href": f"{_base_path()}{URL_PREFIX}/?view=run&{question}",
        "destination": destination,
        "url_route": f"{URL_ROUTE}-{destination.replace('_', '-')}",
    }


def _base_path() -> str:
    """The path of `[api] base_url`, under which a proxy shows Airflow; empty at the root."""
    return urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")
