"""Decisions on applications of YARN: whether a driver has surely ended, and where a resource manager is."""

from __future__ import annotations

import pytest

from tidemark.model.yarn import (
    NodeView,
    YarnApplication,
    application_of,
    applications_of,
    driver_tag,
    node_view,
    surely_ended,
    web_addresses,
)

LOGS = "http://node:8042/node/containerlogs/container_1_0001_01_000001/me"
OLD_NODE, YOUNG_NODE = 50, 150  # the application began at 100


def ended(state: str, final_status: str, node: NodeView | None, logs: str = LOGS) -> bool:
    told = YarnApplication("application_1_0001", state, final_status, driver_logs=logs, started_at=100)
    return surely_ended(told, node)


@pytest.mark.parametrize("state", ["NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING", "KILLING"])
def test_a_driver_whose_state_is_not_final_counts_as_alive_whatever_its_node_says(state: str) -> None:
    assert not ended(state, "KILLED", NodeView(OLD_NODE, None))


def test_a_driver_that_said_good_bye_after_a_success_has_ended() -> None:
    assert ended("FINISHED", "SUCCEEDED", None)


@pytest.mark.parametrize("state", ["FINISHED", "FAILED", "KILLED"])
def test_any_other_end_needs_the_word_of_a_node_that_is_as_old_as_the_application(state: str) -> None:
    assert not ended(state, "FAILED", None)
    assert not ended(state, "FAILED", NodeView(OLD_NODE, "RUNNING"))
    assert not ended(state, "FAILED", NodeView(OLD_NODE, "KILLING"))
    assert not ended(state, "FAILED", NodeView(YOUNG_NODE, None)), "it has forgotten what its predecessor ran"
    assert ended(state, "FAILED", NodeView(OLD_NODE, None))
    assert ended(state, "FAILED", NodeView(OLD_NODE, "DONE"))


def test_an_application_that_never_had_a_container_has_ended_with_its_state() -> None:
    assert ended("KILLED", "KILLED", None, logs="")
    assert not ended("ACCEPTED", "UNDEFINED", None, logs="")


def test_an_application_whose_start_is_hidden_proves_no_end() -> None:
    hidden = application_of({"app": {"id": "application_1_0001", "state": "KILLED", "finalStatus": "KILLED"}})
    assert hidden.hidden
    assert not surely_ended(hidden, None)


def test_answers_of_other_forms_are_refused() -> None:
    for answer in ({}, {"app": None}, {"app": {"id": 1, "state": "X"}}):
        with pytest.raises(ValueError, match="application"):
            application_of(answer)
    assert applications_of({"apps": None}) == applications_of({"apps": {}}) == ()
    for answer in ({}, {"apps": []}, {"apps": {"app": {}}}):
        with pytest.raises(ValueError, match="list"):
            applications_of(answer)
    for info, container in (({}, None), ({"nodeInfo": {"nmStartupTime": "x"}}, None)):
        with pytest.raises(ValueError, match="nmStartupTime"):
            node_view(info, container)
    with pytest.raises(ValueError, match="state"):
        node_view({"nodeInfo": {"nmStartupTime": 1}}, {"container": {}})


def test_a_tag_is_in_lower_case() -> None:
    assert driver_tag("AB-1") == "tidemark-ab-1"


@pytest.mark.parametrize(
    ("site", "addresses"),
    [
        ({}, ()),
        ({"yarn.resourcemanager.hostname": "rm"}, ("http://rm:8088",)),
        ({"yarn.resourcemanager.webapp.address": "rm:80"}, ("http://rm:80",)),
        (
            {
                "yarn.resourcemanager.hostname": "rm",
                "yarn.resourcemanager.webapp.address": "${yarn.resourcemanager.hostname}:9",
            },
            ("http://rm:9",),
        ),
        ({"yarn.resourcemanager.webapp.address": "${elsewhere}:9"}, ()),
        ({"yarn.resourcemanager.hostname": "rm", "yarn.http.policy": "HTTPS_ONLY"}, ("https://rm:8090",)),
        (
            {
                "yarn.resourcemanager.ha.enabled": "true",
                "yarn.resourcemanager.ha.rm-ids": "a, b",
                "yarn.resourcemanager.hostname.a": "one",
                "yarn.resourcemanager.webapp.address.b": "two:7",
            },
            ("http://one:8088", "http://two:7"),
        ),
    ],
)
def test_the_resource_managers_are_those_of_yarn_site(site: dict[str, str], addresses: tuple[str, ...]) -> None:
    assert web_addresses(site) == addresses
