"""Acts on the page's route: rights, the state that was shown, a reason, and the effect in the store, or none at all."""

from __future__ import annotations

import json
import threading
from base64 import urlsafe_b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.airflow.command_line import run_airflow
from tests.airflow.monitor_app import GUEST, NOBODY, VIEWER, Caller, another_app, token
from tests.airflow.monitored import DAG
from tests.airflow.needing import Needing
from tests.control.kept_objects import drifted
from tidemark.control.object_acts import newest_acts
from tidemark.control.object_revisions import facts_of_token, token_of
from tidemark.materialized.worker.views import get_view
from tidemark.model.statements import TransactionKey
from tidemark.pipes.worker.definitions import find_pipe, get_pipe, resume_pipe
from tidemark.replication.worker.definitions import get_replication
from tidemark.streams.worker.streams import get_stream, stream_history

pytestmark = pytest.mark.airflow

USER = "user"


class Desk:
    """Somebody at the page: sees what needs attention, and acts on it."""

    def __init__(self, world: Needing) -> None:
        self.world = world
        self.client = TestClient(another_app(), raise_server_exceptions=False)
        self.ask = Caller(self.client.app)  # type: ignore[arg-type]

    def sees(self, kind: str, name: str, *, role: str = USER) -> dict[str, Any]:
        answer = self.ask("/api/v1/overview", role=role, kind=kind)
        assert answer.status_code == 200, answer.text
        (found,) = (one for one in answer.json()["needs"] if one["name"] == name)
        return dict(found)

    def act(
        self,
        one: dict[str, Any],
        act: str,
        *,
        why: str = "the night",
        role: str | None = USER,
        who: str = "ana",
        **more: object,
    ) -> Any:
        headers = {} if role is None else {"Authorization": f"Bearer {token(role, who)}"}
        wish = {"revision": one["revision"], "why": why, **more}
        path = f"/tidemark/api/v1/objects/{one['kind']}/{one['uid']}/acts/{act}"
        return self.client.post(path, json=wish, headers=headers)

    def history(self) -> list[tuple[str, str, str, str]]:
        found = self.world.store.read(lambda c: newest_acts(c, kind=None, uid=None, limit=200))
        return [(one.name, one.act, one.who, one.why) for one in found]


@pytest.fixture
def world(tmp_path: Path) -> Needing:
    return Needing(tmp_path)


@pytest.fixture
def desk(airflow_home: Path, app: FastAPI, world: Needing, use: Callable[[str], None]) -> Desk:
    use(world.url)
    return Desk(world)


@pytest.fixture
def paused_pipe(world: Needing) -> Needing:
    world._pipes()
    world.monitored._clock(hours=0)
    return world


def test_a_paused_pipe_runs_on_and_the_history_says_who_and_why(desk: Desk, paused_pipe: Needing) -> None:
    seen = desk.sees("pipe", "shop.orders_pipe")
    assert {one["name"]: one["allowed"] for one in seen["acts"]} == {"resume": True, "drop": True}
    done = desk.act(seen, "resume", why="the files are there")
    assert done.status_code == 200, done.text
    assert done.json()["state"] == "RUNNING"
    assert get_pipe(paused_pipe.store, "shop.orders_pipe").paused_at is None
    assert desk.history() == [("shop.orders_pipe", "resume", "ana", "the files are there")]
    told = desk.ask("/api/v1/acts", kind="pipe", uid=seen["uid"]).json()["acts"]
    assert [(one["act"], one["who"], one["why"]) for one in told] == [("resume", "ana", "the files are there")]
    (row,) = json.loads(run_airflow("tidemark", "objects", "acts", "--output", "json").stdout)
    assert (row["act"], row["why"]) == ("resume", "the files are there")
    assert drifted(paused_pipe.store) == []


def test_who_acted_and_why_is_for_those_who_may_read_the_dag_of_the_object(
    desk: Desk, paused_pipe: Needing, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    assert desk.act(desk.sees("pipe", "shop.orders_pipe"), "resume", why="it is secret").status_code == 200
    assert "it is secret" in desk.ask("/api/v1/acts").text
    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", lambda *_, **__: False)
    answer = desk.ask("/api/v1/acts")
    (told,) = answer.json()["acts"]
    assert (told["name"], told["act"], told["who"], told["values"]) == ("shop.orders_pipe", "resume", "", {})
    assert "it is secret" not in answer.text


def test_a_pipe_can_be_dropped(desk: Desk, paused_pipe: Needing) -> None:
    done = desk.act(desk.sees("pipe", "shop.orders_pipe"), "drop")
    assert (done.status_code, done.json()["state"]) == (200, None)
    assert find_pipe(paused_pipe.store, "shop.orders_pipe") is None


def test_a_view_is_resumed_and_suspended_again_with_the_reason_in_it(desk: Desk, world: Needing) -> None:
    world._views()
    world.monitored._clock(hours=0)
    assert desk.act(desk.sees("dynamic_table", "city_counts"), "resume").status_code == 200
    assert get_view(world.store, "city_counts").suspended is None
    until = [one for _ in range(100) if (one := desk.ask("/api/v1/overview").json())["looked_at"] is not None]
    (late,) = (one for one in until[-1]["needs"] if one["name"] == "late_counts")
    assert [one["name"] for one in late["acts"]] == ["refresh", "suspend", "drop"]
    assert desk.act(late, "suspend", why="it costs too much").status_code == 200
    assert get_view(world.store, "late_counts").suspended == "it costs too much"
    assert [one[:2] for one in desk.history()] == [("late_counts", "suspend"), ("city_counts", "resume")]


def test_a_replication_is_resumed_and_its_own_history_has_the_reason(desk: Desk, world: Needing) -> None:
    from tests.airflow.monitored_replications import MonitoredReplications

    MonitoredReplications(world.root / "replicated", world.url).fill()
    world.monitored._clock(hours=0)
    assert desk.act(desk.sees("replication", "crm"), "resume", why="the move is over").status_code == 200
    assert get_replication(world.store, "crm").state.value == "running"
    told = json.loads(run_airflow("tidemark", "replications", "show", "crm", "--output", "json").stdout)
    assert ("ana", "the move is over") in [(move["who"], move["why"]) for move in told[0]["history"]]


def test_a_lock_that_was_left_is_released_and_the_changes_come_again(desk: Desk, world: Needing) -> None:
    world.left("left")
    world.monitored._clock(hours=0)
    seen = desk.sees("stream", "left")
    assert [one["name"] for one in seen["acts"]] == ["release"]
    assert "Nothing" in seen["acts"][0]["loses"]
    assert desk.act(seen, "release").status_code == 200
    world.monitored._consume("again", "left")
    assert get_stream(world.store, "left").offset.version == world.monitored.tables["left"].head()


def test_a_lock_whose_job_was_submitted_is_not_released_here(desk: Desk, world: Needing) -> None:
    import sqlalchemy as sa

    from tidemark.streams.store.schema import transactions

    world.left("left")
    world.monitored._clock(hours=0)
    seen = desk.sees("stream", "left")
    world.store.write(lambda c: c.execute(sa.update(transactions).values(submitted=True)))
    assert desk.sees("stream", "left")["acts"] == []
    refused = desk.act(seen, "release")
    assert (refused.status_code, refused.json()["changed"]) == (409, {"submitted": {"shown": "", "now": "yes"}})
    offered = desk.act(desk.sees("stream", "left"), "release")
    assert offered.status_code == 409
    assert "nothing" in offered.json()["detail"]
    assert desk.history() == []


def failing(world: Needing, name: str = "orders") -> None:
    made = world.monitored
    made._clock(hours=3)
    made._stream(name)
    made._commit(name, times=3)
    made._clock(hours=0)
    made._fail(name, TransactionKey(DAG, "r", "t"), times=1)


def test_a_stream_is_advanced_past_what_fails_and_its_history_says_so(desk: Desk, world: Needing) -> None:
    failing(world)
    seen = desk.sees("stream", "orders")
    assert "never delivered" in next(one["loses"] for one in seen["acts"] if one["name"] == "advance")
    done = desk.act(seen, "advance", why="a test load")
    assert done.status_code == 200, done.text
    head = world.monitored.tables["orders"].head()
    moved = stream_history(world.store, "orders")[-1]
    assert (get_stream(world.store, "orders").offset.version, moved.who, moved.why) == (head, "ana", "a test load")
    assert facts_of_token(done.json()["revision"])["offset"] == str(head)


def test_a_stream_that_a_person_recreates_is_not_opened_to_other_teams(
    desk: Desk, world: Needing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer has the state, uid and revision of the stream that has replaced it."""
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    failing(world)
    seen = desk.sees("stream", "orders")
    done = desk.act(seen, "recreate").json()
    assert (done["uid"], done["state"]) == (get_stream(world.store, "orders").uid, "undelivered")
    assert done["uid"] != seen["uid"]
    now = {**seen, "uid": done["uid"], "revision": done["revision"]}
    with monkeypatch.context() as of_another_team:
        of_another_team.setattr(
            SimpleAuthManager,
            "get_authorized_dag_ids",
            lambda *_, method="GET", **__: {DAG} if method == "GET" else set(),
        )
        assert desk.act(now, "drop").status_code == 403
    assert desk.act(now, "drop").status_code == 200


def test_an_act_that_was_answered_with_503_is_not_done_later(
    desk: Desk, world: Needing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log of its table answers only after the caller was told that the act has not ended."""
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.plugins.monitor import act_routes

    failing(world)
    seen, before = desk.sees("stream", "orders"), get_stream(world.store, "orders").offset
    answers, open_table = threading.Event(), TidemarkHook.open_table
    monkeypatch.setattr(TidemarkHook, "open_table", lambda *given: answers.wait(60) and open_table(*given))
    monkeypatch.setattr(act_routes, "PATIENCE", 0.5)
    refused = desk.act(seen, "advance")
    assert (refused.status_code, refused.json()["detail"]) == (503, act_routes.NO_END)
    answers.set()
    _join_acts()
    assert desk.history() == []
    assert get_stream(world.store, "orders").offset == before


def test_acts_that_a_lake_hangs_keep_no_act_in_the_store_from_its_turn(
    desk: Desk, world: Needing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A further act on that lake never begins, and its answer says so."""
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.plugins.monitor import act_routes

    names = [f"orders{number}" for number in range(act_routes.AT_ONCE + 1)]
    for name in names:
        failing(world, name)
    world._pipes()
    world.monitored._clock(hours=0)
    seen, pipe = [desk.sees("stream", name) for name in names], desk.sees("pipe", "shop.orders_pipe")
    answers, open_table = threading.Event(), TidemarkHook.open_table
    monkeypatch.setattr(TidemarkHook, "open_table", lambda *given: answers.wait(60) and open_table(*given))
    monkeypatch.setattr(act_routes, "PATIENCE", 3.0)
    with ThreadPoolExecutor(len(names)) as people:
        asked = [people.submit(desk.act, one, "advance") for one in seen]
        assert desk.act(pipe, "resume").status_code == 200
        found = sorted(one.result().json()["detail"] for one in asked)
    assert found == sorted([act_routes.NEVER_BEGAN, *[act_routes.NO_END] * act_routes.AT_ONCE])
    answers.set()
    _join_acts()
    assert [one[:2] for one in desk.history()] == [("shop.orders_pipe", "resume")]


def _join_acts() -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("tidemark-monitor-acts"):
            thread.join(60)


def test_what_has_changed_since_it_was_shown_is_said_and_nothing_is_done(desk: Desk, paused_pipe: Needing) -> None:
    seen = desk.sees("pipe", "shop.orders_pipe")
    resume_pipe(paused_pipe.store, "shop.orders_pipe", by="bob")
    refused = desk.act(seen, "drop")
    assert refused.status_code == 409
    found = refused.json()
    assert found["changed"]["state"] == {"shown": "PAUSED", "now": "RUNNING"}
    assert "state was PAUSED and is RUNNING" in found["detail"]
    assert find_pipe(paused_pipe.store, "shop.orders_pipe") is not None
    assert desk.history() == []
    assert desk.act({**seen, "revision": found["revision"]}, "drop").status_code == 200


def test_of_two_who_act_at_once_one_is_told_what_the_other_did(desk: Desk, paused_pipe: Needing) -> None:
    seen = desk.sees("pipe", "shop.orders_pipe")
    with ThreadPoolExecutor(4) as people:
        acts = ("resume", "drop", "resume", "drop")
        answers = list(people.map(lambda act: desk.act(seen, act), acts))
    assert sorted(one.status_code for one in answers) in (
        [200, 404, 404, 404],
        [200, 404, 404, 409],
        [200, 404, 409, 409],
        [200, 409, 409, 409],
    )
    assert len(desk.history()) == 1


def test_of_two_accounts_with_one_object_before_them_the_second_is_told_what_has_changed(
    desk: Desk, paused_pipe: Needing
) -> None:
    """Both see it paused. The history and Airflow's audit log have each under the name of the account."""
    from airflow.models import Log  # noqa: TID251 - as Airflow's page shows it
    from airflow.utils.session import create_session

    seen = desk.sees("pipe", "shop.orders_pipe")
    assert desk.act(seen, "resume", who="eve", why="two accounts").status_code == 200
    refused = desk.act(seen, "drop", who="bob", why="two accounts")
    found = refused.json()
    assert refused.status_code == 409
    assert found["changed"]["state"] == {"shown": "PAUSED", "now": "RUNNING"}
    assert "somebody has acted on it" in found["detail"]
    assert find_pipe(paused_pipe.store, "shop.orders_pipe") is not None
    assert desk.act({**seen, "revision": found["revision"]}, "drop", who="bob").status_code == 200
    assert [one[1:3] for one in desk.history()] == [("drop", "bob"), ("resume", "eve")]
    told = desk.ask("/api/v1/acts", uid=seen["uid"]).json()["acts"]
    assert [(one["act"], one["who"]) for one in told] == [("drop", "bob"), ("resume", "eve")]
    with create_session() as session:
        logged = session.query(Log).filter(Log.event == "tidemark_act", Log.extra.contains("two accounts")).all()
        assert [one.owner for one in logged] == ["eve", "bob"]


def test_two_accounts_that_act_at_the_same_moment_are_one_act_and_one_refusal(desk: Desk, paused_pipe: Needing) -> None:
    seen = desk.sees("pipe", "shop.orders_pipe")
    with ThreadPoolExecutor(2) as people:
        done = dict(
            zip(("eve", "bob"), people.map(lambda who: desk.act(seen, "resume", who=who), ("eve", "bob")), strict=True)
        )
    (winner,) = (who for who, answer in done.items() if answer.status_code == 200)
    (loser,) = done.keys() - {winner}
    assert done[loser].status_code == 409
    assert [one[1:3] for one in desk.history()] == [("resume", winner)]


def test_an_act_and_its_history_are_stored_together_or_not_at_all(
    desk: Desk, paused_pipe: Needing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check that runs inside the transaction refuses what the check before it has let through."""
    from tidemark.control import object_acts

    seen = desk.sees("pipe", "shop.orders_pipe")
    as_it_is = object_acts._as_it_is

    def then_bob_is_quicker(*given: Any) -> Any:
        found = as_it_is(*given)
        resume_pipe(paused_pipe.store, "shop.orders_pipe", by="bob")
        return found

    monkeypatch.setattr(object_acts, "_as_it_is", then_bob_is_quicker)
    paused_pipe.store._engine.dispose()
    refused = desk.act(seen, "drop")
    assert refused.status_code in (409, 503), refused.text
    assert find_pipe(paused_pipe.store, "shop.orders_pipe") is not None
    assert desk.history() == []


def test_without_the_right_to_edit_the_dag_nothing_is_done(desk: Desk, paused_pipe: Needing) -> None:
    seen = desk.sees("pipe", "shop.orders_pipe", role=VIEWER)
    assert {one["allowed"] for one in seen["acts"]} == {False}
    assert seen["acts"][0]["command"] == "airflow tidemark pipes resume shop.orders_pipe"
    assert [desk.act(seen, "resume", role=role).status_code for role in (NOBODY, GUEST, VIEWER)] == [401, 403, 403]
    assert desk.sees("pipe", "shop.orders_pipe")["state"] == "PAUSED"
    assert desk.history() == []


def test_a_dag_of_another_team_is_not_acted_for(
    desk: Desk, paused_pipe: Needing, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    monkeypatch.setattr(
        SimpleAuthManager, "get_authorized_dag_ids", lambda *_, method="GET", **__: {DAG} if method == "GET" else set()
    )
    seen = desk.sees("pipe", "shop.orders_pipe")
    assert seen["owner"] == DAG
    assert {one["allowed"] for one in seen["acts"]} == {False}
    assert desk.act(seen, "resume").status_code == 403
    assert desk.history() == []


@pytest.mark.parametrize("why", ["", "   ", "x" * 1001, "a\0b"])
def test_an_act_needs_a_reason(desk: Desk, paused_pipe: Needing, why: str) -> None:
    assert desk.act(desk.sees("pipe", "shop.orders_pipe"), "resume", why=why).status_code == 422
    assert desk.history() == []


@pytest.mark.parametrize("revision", ["", "x", "bnVsbA", token_of({})])
def test_a_revision_that_was_never_shown_does_nothing(desk: Desk, paused_pipe: Needing, revision: str) -> None:
    seen = desk.sees("pipe", "shop.orders_pipe")
    assert desk.act({**seen, "revision": revision}, "resume").status_code in (409, 422)
    assert desk.history() == []


HALF = "\ud800"  # of a surrogate pair: JSON can have it, and UTF-8 cannot


@pytest.mark.parametrize(
    "more",
    [
        {"why": HALF},
        {"revision": HALF},
        {"values": {"to": HALF}},
        {"values": {HALF: "x" * 2000}},
        {"why": float("nan")},
        {"revision": urlsafe_b64encode(json.dumps({"state": HALF}).encode()).decode()},
    ],
)
def test_a_text_that_utf_8_or_json_cannot_have_is_refused_in_words(
    desk: Desk, paused_pipe: Needing, more: dict[str, Any]
) -> None:
    seen = desk.sees("pipe", "shop.orders_pipe")
    body = json.dumps({"revision": seen["revision"], "why": "the night", **more})
    answer = desk.client.post(
        f"/tidemark/api/v1/objects/pipe/{seen['uid']}/acts/resume",
        content=body,
        headers={"Authorization": f"Bearer {token(USER)}", "Content-Type": "application/json"},
    )
    assert (answer.status_code, bool(answer.json()["detail"])) == (422, True), answer.text
    assert desk.history() == []


def test_an_object_or_an_act_that_is_not_there_is_said(desk: Desk, paused_pipe: Needing) -> None:
    seen = desk.sees("pipe", "shop.orders_pipe")
    assert desk.act({**seen, "uid": "gone"}, "resume").status_code == 404
    assert desk.act({**seen, "kind": "table"}, "resume").status_code == 422
    refused = desk.act(seen, "suspend")
    assert (refused.status_code, "Offered: resume, drop" in refused.json()["detail"]) == (409, True)


def test_airflows_audit_log_has_each_attempt(desk: Desk, paused_pipe: Needing) -> None:
    from airflow.models import Log  # noqa: TID251 - as Airflow's page shows it
    from airflow.utils.session import create_session

    seen = desk.sees("pipe", "shop.orders_pipe")
    desk.act(seen, "resume", why="for the audit", role=VIEWER)
    desk.act(seen, "resume", why="for the audit")
    with create_session() as session:
        found = session.query(Log).filter(Log.event == "tidemark_act", Log.extra.contains("for the audit")).all()
        told = [(one.owner, json.loads(one.extra)) for one in found]
        assert {one.dag_id for one in found} == {DAG}  # so the DAG's own page has them
    assert [who for who, _ in told] == ["ana", "ana"]
    assert {(extra["act"], extra["kind"], extra["uid"]) for _, extra in told} == {("resume", "pipe", seen["uid"])}


@pytest.mark.parametrize("key", ["dag_id", "run_id", "dag_run_id", "task_id", "act", "x"])
def test_nobody_puts_the_attempt_into_the_audit_log_of_another_dag(desk: Desk, paused_pipe: Needing, key: str) -> None:
    """Airflow takes such keys of body and address before the names in the path."""
    from airflow.models import Log  # noqa: TID251 - as Airflow's page shows it
    from airflow.utils.session import create_session

    seen = desk.sees("pipe", "shop.orders_pipe")
    path = f"/tidemark/api/v1/objects/pipe/{seen['uid']}/acts/resume"
    wish = {"revision": seen["revision"], "why": "the night"}
    headers = {"Authorization": f"Bearer {token(USER)}"}
    in_body = desk.client.post(path, json={**wish, key: "payroll"}, headers=headers)
    in_address = desk.client.post(path, params={key: "payroll"}, json=wish, headers=headers)
    assert (in_body.status_code, in_body.json()["detail"][0]["loc"]) == (422, ["body", key])
    assert (in_address.status_code, in_address.json()["detail"][0]["loc"]) == (422, ["query", key])
    with create_session() as session:
        assert session.query(Log).filter(Log.extra.contains("payroll")).count() == 0
        assert session.query(Log).filter(Log.dag_id == "payroll").count() == 0
    assert desk.history() == []


def test_an_embedded_store_that_no_task_has_made_has_nothing_to_act_on(
    airflow_home: Path, app: FastAPI, world: Needing, use: Callable[[str], None], tmp_path: Path
) -> None:
    use(f"sqlite:///{tmp_path}/none.db")
    desk = Desk(world)
    assert desk.act({"kind": "pipe", "uid": "u", "revision": "x"}, "resume").status_code == 404
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", None])
def test_a_form_of_another_site_does_nothing(desk: Desk, paused_pipe: Needing, kind: str | None) -> None:
    """A browser sends such forms with the cookies of whoever is logged in, and asks nobody before."""
    seen = desk.sees("pipe", "shop.orders_pipe")
    headers = {"Authorization": f"Bearer {token(USER)}"} | ({} if kind is None else {"Content-Type": kind})
    wish = json.dumps({"revision": seen["revision"], "why": "a trick"})
    path = f"/tidemark/api/v1/objects/pipe/{seen['uid']}/acts/drop"
    assert desk.client.post(path, content=wish, headers=headers).status_code == 422
    assert find_pipe(paused_pipe.store, "shop.orders_pipe") is not None
