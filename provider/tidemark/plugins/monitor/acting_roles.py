"""Roles whose holders may act on any object, as `[tidemark] acting_roles` names them.

Airflow's base class of users has no roles. The simple auth manager gives a user one as `role`, and that of FAB several
as `roles`, each with a `name`. A user of another auth manager has neither, so the setting has no effect there. That is
said in the log, once, and to each who is refused.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.sdk.configuration import conf

__all__ = ["ActingRoles", "acting_roles_of"]

NO_ROLES = (
    "[tidemark] acting_roles has no effect: {manager} gives its users no roles. Leave the setting empty, or give the "
    "right to edit the DAGs."
)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ActingRoles:
    """The setting for one user. `held`: one of the named roles is the user's. `problem`: why the setting has no effect;
    None: it has, or it is empty.
    """

    named: frozenset[str]
    held: bool
    problem: str | None = None


def acting_roles_of(user: BaseUser, manager: str) -> ActingRoles:
    """`manager`: the name of the auth manager's class. Names are compared letter by letter."""
    named = _named(conf.get("tidemark", "acting_roles", fallback=""))
    if not named:
        return ActingRoles(named, held=False)
    roles = _roles_of(user)
    if roles is None:
        return ActingRoles(named, held=False, problem=_said_once(manager))
    return ActingRoles(named, held=not named.isdisjoint(roles))


def _named(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())


def _roles_of(user: BaseUser) -> Collection[str] | None:
    """None: the auth manager gives its users no roles. The simple one takes a role in any case."""
    several, one = getattr(user, "roles", None), getattr(user, "role", None)
    if several is not None:
        return {str(getattr(role, "name", role)) for role in several}
    if one is None:
        return () if hasattr(user, "role") else None
    return {str(one), str(one).upper()}


@cache
def _said_once(manager: str) -> str:
    problem = NO_ROLES.format(manager=manager)
    log.error(problem)
    return problem
