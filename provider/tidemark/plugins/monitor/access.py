"""The rights to see streams and replications: Airflow's own checks, asked on every route.

A stream is an asset, and so is a replicated table: a user who may read assets may see streams and replications. Names
of DAGs, runs and workers are shown to those who may read the DAG. A source database is shown to those who may read its
connection, too. An act on an object takes the right to edit the DAG that owns it, or a role that the settings name. If
no owner is known, it takes the right to edit DAGs at all, or such a role.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_asset, requires_access_connection
from fastapi import Depends

from tidemark.plugins.monitor.acting_roles import ActingRoles, acting_roles_of

__all__ = ["ActRights", "MayAct", "ReadableDags", "UserName", "require_reader", "require_source_reader"]

NO_RIGHT = "You lack the right to edit the DAG that owns the object."
NO_RIGHT_AT_ALL = "No DAG is known to own the object, and you lack the right to edit DAGs at all."
NO_ROLE = "None of your roles is among those of [tidemark] acting_roles."
BY_COMMAND = "The command beside it does the same."

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


@dataclass(frozen=True)
class ActRights:
    """The caller's rights to act. `editable`: DAGs that the caller may edit; `any_dag`: DAGs at all. A DAG that is gone
    can be edited by nobody.
    """

    editable: frozenset[str]
    any_dag: bool
    roles: ActingRoles

    def __call__(self, owner: str | None) -> bool:
        """Whether the caller may act on an object of that DAG; None: no owner is known. A role takes no right away."""
        return self.roles.held or (self.any_dag if owner is None else owner in self.editable)

    def refusal(self, owner: str | None) -> str:
        """The missing right, and the way that is left."""
        missing = NO_RIGHT_AT_ALL if owner is None else NO_RIGHT
        role = self.roles.problem or (NO_ROLE if self.roles.named else "")
        return " ".join(part for part in (missing, role, BY_COMMAND) if part)


def _may_act(user: GetUserDep) -> ActRights:
    manager = get_auth_manager()
    return ActRights(
        editable=frozenset(manager.get_authorized_dag_ids(user=user, method="PUT")),
        any_dag=bool(manager.is_authorized_dag(method="PUT", user=user)),
        roles=acting_roles_of(user, type(manager).__name__),
    )


MayAct = Annotated[ActRights, Depends(_may_act)]
"""The rights of the caller to act on objects, by the DAGs that own these."""
