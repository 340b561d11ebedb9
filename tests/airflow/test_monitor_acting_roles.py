"""The right to act on the page: editors of the owner's DAG have it, and holders of a role that the settings name."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from fastapi import FastAPI

from tests.airflow.monitor_app import GUEST, NOBODY, VIEWER
from tests.airflow.monitored import DAG
from tests.airflow.needing import Needing
from tests.airflow.test_monitor_acts import USER, Desk
from tidemark.control.schema import objects
from tidemark.errors import ReplicationRefused
from tidemark.plugins.monitor.act_routes import _in_words
from tidemark.plugins.monitor.acting_roles import acting_roles_of
from tidemark.plugins.monitor.replication_answers import FOR_OTHERS

pytestmark = pytest.mark.airflow

PIPE = "shop.orders_pipe"
Name = Callable[[str], None]


@pytest.fixture
def desk(airflow_home: Path, app: FastAPI, tmp_path: Path, use: Callable[[str], None]) -> Desk:
    """A pipe that a DAG owns, and that is paused."""
    world = Needing(tmp_path)
    world._pipes()
    world.monitored._clock(hours=0)
    use(world.url)
    return Desk(world)


@pytest.fixture
def name(monkeypatch: pytest.MonkeyPatch) -> Name:
    """Names roles in the settings."""
    return lambda roles: monkeypatch.setenv("AIRFLOW__TIDEMARK__ACTING_ROLES", roles)


def owned_by(desk: Desk, dag: str | None) -> None:
    of = objects.update().where(objects.c.name == PIPE).values(owner_dag=dag)
    desk.world.store.write(lambda connection: connection.execute(of))


@pytest.mark.parametrize("roles", ["VIEWER", " OP ,VIEWER,", "viewer"])
def test_a_named_role_acts_without_the_right_to_edit_the_dag(desk: Desk, name: Name, roles: str) -> None:
    name(roles)
    seen = desk.sees("pipe", PIPE, role=VIEWER)
    assert {one["allowed"] for one in seen["acts"]} == {True}
    offered = desk.ask(f"/api/v1/objects/pipe/{seen['uid']}/acts", role=VIEWER).json()
    assert {one["allowed"] for one in offered["acts"]} == {True}
    assert desk.act(seen, "resume", role=VIEWER).status_code == 200
    assert [one[1:] for one in desk.history()] == [("resume", "ana", "the night")]


@pytest.mark.parametrize("roles", ["OP", "VIEWE", "VIEWER2", "VIEWER OP", "Viewer", "*"])
def test_another_role_does_not_and_the_answer_names_the_setting(desk: Desk, name: Name, roles: str) -> None:
    name(roles)
    seen = desk.sees("pipe", PIPE, role=VIEWER)
    assert {one["allowed"] for one in seen["acts"]} == {False}
    refused = desk.act(seen, "resume", role=VIEWER)
    assert (refused.status_code, "[tidemark] acting_roles" in refused.json()["detail"]) == (403, True)
    assert desk.history() == []


@pytest.mark.parametrize("roles", [None, "", " , "])
def test_without_named_roles_the_right_to_edit_the_dag_decides(desk: Desk, name: Name, roles: str | None) -> None:
    if roles is not None:
        name(roles)
    seen = desk.sees("pipe", PIPE, role=VIEWER)
    refused = desk.act(seen, "resume", role=VIEWER)
    assert (refused.status_code, "acting_roles" in refused.json()["detail"]) == (403, False)
    assert desk.act(seen, "resume").status_code == 200


def test_a_named_role_takes_no_right_away_and_opens_the_page_to_nobody(desk: Desk, name: Name) -> None:
    name("OP")
    seen = desk.sees("pipe", PIPE)
    assert [desk.act(seen, "resume", role=role).status_code for role in (NOBODY, GUEST)] == [401, 403]
    assert desk.act(seen, "resume", role=USER).status_code == 200


@pytest.mark.parametrize(
    ("owner", "roles", "acts"),
    [
        (DAG, "", {USER: 200, VIEWER: 403}),
        (None, "", {USER: 200, VIEWER: 403}),
        (None, "VIEWER", {USER: 200, VIEWER: 200}),
        (None, "OP", {USER: 200, VIEWER: 403, "op": 200}),
        ("a_dag_that_is_gone", "", {USER: 403, VIEWER: 403, "admin": 403}),
        ("a_dag_that_is_gone", "OP", {USER: 403, "op": 200}),
    ],
)
def test_who_acts_on_an_object_goes_by_its_owner_also_if_none_is_known(
    desk: Desk, name: Name, owner: str | None, roles: str, acts: dict[str, int]
) -> None:
    owned_by(desk, owner)
    name(roles)
    for role, status in acts.items():
        seen = desk.sees("pipe", PIPE, role=role)
        assert {one["allowed"] for one in seen["acts"]} == {status == 200}, role
        answer = desk.act({**seen, "revision": "x"}, "resume", role=role)
        assert answer.status_code == (422 if status == 200 else 403), (role, answer.text)
        nobodys = "No DAG is known to own the object" in answer.json()["detail"]
        assert nobodys == (status == 403 and owner is None), role
    assert desk.history() == []


def test_a_role_that_acts_reads_no_refusal_of_a_dag_that_it_may_not_read(desk: Desk, name: Name) -> None:
    name("OP")
    name("OP")
    owned_by(desk, "a_dag_that_is_gone")
    refused = desk.act(desk.sees("pipe", PIPE, role="op"), "pause", role="op")
    assert (refused.status_code, "Offered: resume, drop." in refused.json()["detail"]) == (409, True)
    error = ReplicationRefused(replication="shop", problem="shop_mirror/r1/capture/-1 holds it")
    assert _in_words(error, DAG, {DAG}) == _in_words(error, None, ()) == f"ReplicationRefused: {error}"
    assert _in_words(error, DAG, ()) == f"ReplicationRefused: {FOR_OTHERS}"


class Roleless(BaseUser):
    """A user of an auth manager that knows no roles."""

    def get_id(self) -> str:
        return "ana"

    def get_name(self) -> str:
        return "ana"


def test_an_auth_manager_without_roles_is_named_to_who_is_refused_and_once_in_the_log(
    desk: Desk, name: Name, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class TeamsAuthManager(SimpleAuthManager):
        def deserialize_user(self, token: object) -> Roleless:  # type: ignore[override]
            return Roleless()

        def is_authorized_asset(self, **_: object) -> bool:
            return True

        def is_authorized_dag(self, *, method: str, **_: object) -> bool:
            return method == "GET"

    from airflow.api_fastapi.app import get_auth_manager

    seen = desk.sees("pipe", PIPE)
    monkeypatch.setattr(get_auth_manager(), "__class__", TeamsAuthManager)
    name("OP")
    with caplog.at_level(logging.ERROR):
        answers = [desk.act(seen, "resume") for _ in range(2)]
    for answer in answers:
        assert answer.status_code == 403
        assert "[tidemark] acting_roles has no effect: TeamsAuthManager gives its users no roles." in answer.text
    assert [said for said in map(logging.LogRecord.getMessage, caplog.records) if "acting_roles" in said] == [
        "[tidemark] acting_roles has no effect: TeamsAuthManager gives its users no roles. Leave the setting empty, or "
        "give the right to edit the DAGs."
    ]
    name("")
    assert "acting_roles" not in desk.act(seen, "resume").text
    assert desk.history() == []


def test_users_of_amazons_auth_manager_have_no_roles(name: Name) -> None:
    from airflow.providers.amazon.aws.auth_manager.user import AwsAuthManagerUser

    name("OP")
    found = acting_roles_of(AwsAuthManagerUser(user_id="u", groups=["OP"]), "AwsAuthManager")
    assert (found.held, found.problem is None) == (False, False)


def test_a_user_without_a_role_of_the_simple_auth_manager_has_none_of_the_named(name: Name) -> None:
    name("OP,None")
    found = acting_roles_of(SimpleAuthManagerUser(username="ana", role=None), "SimpleAuthManager")
    assert (found.held, found.problem) == (False, None)


def test_users_of_fab_have_several_roles_by_their_names_letter_by_letter(name: Name) -> None:
    models = pytest.importorskip("airflow.providers.fab.auth_manager.models")
    user = models.User(username="ana", roles=[models.Role(name="Viewer"), models.Role(name="Data Support")])
    for roles, held in (("Data Support", True), ("data support", False), ("Op,Viewer", True), ("Op", False)):
        name(roles)
        found = acting_roles_of(user, "FabAuthManager")
        assert (found.held, found.problem) == (held, None), roles


def test_an_attempt_asks_the_store_for_the_owner_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidemark.control.store import ControlStore

    seen, reads, read = desk.sees("pipe", PIPE, role=VIEWER), [], ControlStore.read

    def counted(self: ControlStore, work: Callable[..., object]) -> object:
        reads.append(work)
        return read(self, work)

    monkeypatch.setattr(ControlStore, "read", counted)
    assert desk.act(seen, "resume", role=VIEWER).status_code == 403
    assert len([work for work in reads if "_owner" in work.__qualname__]) == 1  # looks go on in the background
