"""The page of settings has every field of the connection and every option of Airflow's configuration, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.conftest import HOME  # sets Airflow's home before Airflow is imported
from tidemark.provider_info import get_provider_info

assert HOME
PAGE = (Path(__file__).parents[2] / "provider" / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
INFO: Any = get_provider_info()


def rows(heading: str) -> list[list[str]]:
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^\| (.+) \|$", section, re.MULTILINE)
    return [[cell.strip().strip("`") for cell in re.split(r"(?<!\\)\|", line)] for line in lines[2:]]


def test_each_field_of_the_connection_is_on_the_page_with_its_label() -> None:
    fields = INFO["connection-types"][0]["conn-fields"]
    assert [(label, key) for label, key, *_ in rows("The connection")] == [
        (field["label"], key) for key, field in fields.items()
    ]


def test_each_default_that_a_field_names_is_that_of_the_page() -> None:
    defaults = {key: default for _, key, default, _ in rows("The connection")}
    for key, field in INFO["connection-types"][0]["conn-fields"].items():
        named = re.search(r"Empty: (\d+)\b", field["description"])
        assert named is None or defaults[key] == named[1], key


def test_each_option_of_the_configuration_is_on_the_page_with_its_default() -> None:
    options = INFO["config"]["tidemark"]["options"]
    told = {name: default for name, _, default, _ in rows("Airflow's configuration")}
    assert told == {name: option["default"] for name, option in options.items()}


@pytest.mark.airflow
def test_the_variables_are_those_that_the_hook_reads() -> None:
    from tidemark.hooks.tidemark import _OPTIONS

    told = {name for name, variable, *_ in rows("Airflow's configuration") if variable == f"TIDEMARK_{name.upper()}"}
    assert told == set(_OPTIONS)
