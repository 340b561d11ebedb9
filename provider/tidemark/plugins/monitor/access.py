"""The rights to see streams and replications: Airflow's own checks, asked on every route.

A stream is an asset, and so is a replicated table: a user who may read assets may see streams and replications. Names
of DAGs, runs and workers are shown to those who may read the DAG. A source database is shown to those who may read its
connection, too. An act on an object takes the right to edit the DAG that owns it. If no DAG owns it, it takes the right
to edit DAGs at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_asset, requires_access_connection
from fastapi import Depends

__all__ = ["MayAct", "ReadableDags", "UserName", "require_reader", "require_source_reader"]

require_reader = requires_access_asset("GET")
require_source_reader = requires_access_connection("GET")  # by the path's `connection_id`


def _readable_dags(user: GetUserDep) -> frozenset[str]:
    return frozenset(get_auth_manager().get_authorized_dag_ids(user=user, method="GET"))


ReadableDags = Annotated[frozenset[str], Depends(_readable_dags)]
"""Ids of the DAGs that the caller may read."""


def _user_name(user: GetUserDep) -> str:
    return str(user.get_name())


UserName = Annotated[str, Depends(_user_name)]
"""The name of the caller, which histories keep."""


def _may_act(user: GetUserDep) -> Callable[[str | None], bool]:
    manager = get_auth_manager()
    editable = frozenset(manager.get_authorized_dag_ids(user=user, method="PUT"))
    any_dag = bool(manager.is_authorized_dag(method="PUT", user=user))

    def may(owner: str | None) -> bool:
        return any_dag if owner is None else owner in editable

    return may


MayAct = Annotated[Callable[[str | None], bool], Depends(_may_act)]
"""Whether the caller may act on an object, by the DAG that owns it. A DAG that is gone can be edited by nobody."""
