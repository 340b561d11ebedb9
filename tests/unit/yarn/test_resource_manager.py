"""YARN's answers over HTTP, and the errors in place of those that do not come. A server plays YARN."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from tests.played_yarn import CONTAINER, NOBODY, PlayedYarn, played_yarn
from tidemark.errors import ApplicationUnknown, ClusterRefused, ClusterUnreachable, InvalidArgument
from tidemark.hooks.yarn import ResourceManager, addresses_from
from tidemark.model.yarn import NodeView


@pytest.fixture
def standby() -> Iterator[PlayedYarn]:
    with played_yarn() as running:
        yield running


def test_an_application_is_read_with_its_container_and_node(yarn: PlayedYarn) -> None:
    name = yarn.run(1, diagnostics="  starting ", trackingUrl="http://proxy/x")
    manager = ResourceManager((yarn.address,))
    found = manager.application(name)
    assert (found.state, found.final, found.diagnostics) == ("RUNNING", False, "starting")
    assert (found.container, found.node) == (CONTAINER, yarn.address)
    assert manager.page_of(found) == "http://proxy/x"
    assert manager.node_of(found) == NodeView(yarn.node_started, "RUNNING")
    yarn.end(name, "FAILED", "FAILED", "exit code 137")
    ended = manager.application(name)
    assert (ended.final, ended.succeeded, ended.diagnostics) == (True, False, "exit code 137")
    assert manager.node_of(ended) == NodeView(yarn.node_started, None)
    assert manager.driver_log(ended) == "[stdout]\nthe end of stdout\n[stderr]\nthe end of stderr"


def test_applications_are_found_by_their_tag_the_newest_first(yarn: PlayedYarn) -> None:
    old, new = yarn.run(1, tags="etl,tidemark-a"), yarn.run(2, tags="tidemark-a")
    yarn.run(3, tags="tidemark-ab")
    manager = ResourceManager((yarn.address,))
    assert [one.id for one in manager.tagged("tidemark-a")] == [new, old]
    assert manager.tagged("tidemark-b") == ()


def test_a_kill_is_asked_for_and_an_application_that_has_ended_is_left_as_it_is(yarn: PlayedYarn) -> None:
    running, done = yarn.run(1), yarn.run(2)
    yarn.end(done)
    manager = ResourceManager((yarn.address,))
    manager.kill(running)
    manager.kill(done)
    assert (manager.application(running).state, manager.application(done).state) == ("KILLED", "FINISHED")


def test_a_manager_in_standby_sends_to_the_active_one_for_reads_and_for_kills(
    yarn: PlayedYarn, standby: PlayedYarn
) -> None:
    standby.moved_to = yarn.address
    name = yarn.run(1)
    manager = ResourceManager((standby.address,))
    assert manager.application(name).state == "RUNNING"
    manager.kill(name)
    assert yarn.apps[name]["state"] == "KILLED"


@pytest.mark.parametrize("act", ["application", "kill", "tagged"])
def test_a_manager_that_sends_to_nobody_during_a_failover_does_not_answer(
    yarn: PlayedYarn, standby: PlayedYarn, act: str
) -> None:
    standby.moved_to, name = NOBODY, yarn.run(1)
    with pytest.raises(ClusterUnreachable, match="no manager is active"):
        getattr(ResourceManager((standby.address,)), act)(name)
    getattr(ResourceManager((standby.address, yarn.address)), act)(name)


def test_the_start_is_that_of_the_active_manager(yarn: PlayedYarn, standby: PlayedYarn) -> None:
    standby.moved_to, standby.manager_started, yarn.manager_started = yarn.address, 1000, 2000
    assert ResourceManager((standby.address, yarn.address)).started_at() == datetime.fromtimestamp(2, UTC)
    with pytest.raises(ClusterUnreachable, match="STANDBY"):
        ResourceManager((standby.address,)).started_at()


def test_the_second_manager_answers_for_one_that_is_gone(yarn: PlayedYarn) -> None:
    name = yarn.run(1)
    assert ResourceManager((_nobody(), yarn.address)).application(name).id == name


@pytest.mark.parametrize("act", [lambda m, name: m.application(name), lambda m, name: m.tagged("t")])
@pytest.mark.parametrize("user", ["bob", ""])
def test_an_application_that_acls_hide_is_a_refusal_and_no_end(
    yarn: PlayedYarn, user: str, act: Callable[[ResourceManager, str], object]
) -> None:
    name = yarn.run(1, tags="t")
    yarn.end(name, "KILLED", "KILLED")
    yarn.viewer = "ann"
    with pytest.raises(ClusterRefused, match=r"yarn\.acl\.enable") as refused:
        act(ResourceManager((yarn.address,), user=user), name)
    assert (user or "without a user") in str(refused.value)
    act(ResourceManager((yarn.address,), user="ann"), name)


def test_each_request_names_the_user_who_submits(yarn: PlayedYarn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "ann of shop")
    yarn.viewer, yarn.filters = "ann of shop", True
    name = yarn.run(1, tags="t")
    manager = ResourceManager((yarn.address,))
    (found,) = manager.tagged("t")
    manager.node_of(found)
    manager.driver_log(found)
    manager.kill(name)
    assert manager.started_at()
    assert [one for one in yarn.asked if one.count("user.name=ann+of+shop") != 1] == []
    assert ResourceManager((yarn.address,), user="bob").tagged("t") == ()


def test_an_application_that_is_not_known_is_named_with_the_address(yarn: PlayedYarn) -> None:
    manager = ResourceManager((yarn.address,))
    for act in (manager.application, manager.kill):
        with pytest.raises(ApplicationUnknown, match="application_9_0009") as unknown:
            act("application_9_0009")
        assert unknown.value.facts["address"] == yarn.address


def test_a_manager_that_is_gone_is_unreachable() -> None:
    with pytest.raises(ClusterUnreachable, match="refused"):
        ResourceManager((_nobody(),)).application("application_1_0001")


def test_a_manager_that_hangs_is_unreachable_after_the_time_out(yarn: PlayedYarn) -> None:
    yarn.silent = True
    began = time.monotonic()
    with pytest.raises(ClusterUnreachable, match="does not answer"):
        ResourceManager((yarn.address,), seconds=0.3).tagged("t")
    assert time.monotonic() - began < 50  # else for good


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (401, "<html>Authentication required</html>", ClusterRefused),
        (403, '{"RemoteException": {"message": "User dr.who has no rights"}}', ClusterRefused),
        (500, "{}", ClusterUnreachable),
        (200, "There is no active RM right now.", ClusterUnreachable),
        (200, "[]", ClusterUnreachable),
        (200, '{"app": {"id": "x"}}', ClusterUnreachable),
        (200, "[" * 100_000, ClusterUnreachable),
    ],
)
def test_other_answers_are_refusals_or_no_answers(
    yarn: PlayedYarn, status: int, body: str, error: type[Exception]
) -> None:
    yarn.answers["/ws/v1/cluster/apps/application_1_0001"] = (status, body)
    with pytest.raises(error) as told:
        ResourceManager((yarn.address,)).application("application_1_0001")
    assert "html" not in str(told.value)
    assert ("dr.who" in str(told.value)) == ("dr.who" in body)


def test_a_node_that_does_not_answer_says_nothing_and_names_the_command_for_logs(yarn: PlayedYarn) -> None:
    name = yarn.run(1, amContainerLogs=f"{_nobody()}/node/containerlogs/{CONTAINER}/me")
    manager = ResourceManager((yarn.address,), seconds=0.5)
    found = manager.application(name)
    assert manager.node_of(found) is None
    assert f"yarn logs -applicationId {name}" in manager.driver_log(found)


def test_addresses_get_a_scheme_and_no_user() -> None:
    assert addresses_from(" rm1:8088, https://rm2:8090/ ") == ("http://rm1:8088", "https://rm2:8090")
    for wrong in ("http://ann:secret@rm:8088", "ftp://rm", "http://"):
        with pytest.raises(InvalidArgument, match="yarn_resourcemanager_webapp_address") as refused:
            addresses_from(wrong)
        assert "secret" not in str(refused.value)


def _nobody() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"
