"""The rights to see streams and replications: Airflow's own checks, asked on every route.

A stream is an asset, and so is a replicated table: a user who may read assets may see streams and replications. Names
of DAGs, runs and workers are shown to those who may read the DAG. A source database is shown to those who may read its
connection, too.
"""

from __future__ import annotations

from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_asset, requires_access_connection
from fastapi import Depends

__all__ = ["ReadableDags", "require_reader", "require_source_reader"]

require_reader = requires_access_asset("GET")
require_source_reader = requires_access_connection("GET")  # by the path's `connection_id`


def _readable_dags(user: GetUserDep) -> frozenset[str]:
    return frozenset(get_auth_manager().get_authorized_dag_ids(user=user, method="GET"))


ReadableDags = Annotated[frozenset[str], Depends(_readable_dags)]
"""Ids of the DAGs that the caller may read."""
