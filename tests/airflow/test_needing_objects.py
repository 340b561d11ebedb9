"""A notifier of Airflow reports the objects that need attention, in its own templates. Nothing goes over a network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.needing import Needing
from tidemark.errors import InvalidArgument
from tidemark.notifications.needing_objects import NeedingObjectsNotifier

pytestmark = pytest.mark.airflow


@pytest.fixture(scope="module")
def needing(tmp_path_factory: pytest.TempPathFactory) -> Needing:
    return Needing(tmp_path_factory.mktemp("needing")).fill()


@pytest.fixture(autouse=True)
def store(airflow_home: Path, needing: Needing, use: Callable[[str], None]) -> None:
    use(needing.url)


def told(tmp_path: Path, text: str, **how: Any) -> tuple[NeedingObjectsNotifier, Path]:
    file = tmp_path / "told"
    kwargs = {"file": str(file), "text": text}
    return NeedingObjectsNotifier(tell="tests.airflow.notified.KeepsIt", tell_kwargs=kwargs, **how), file


def test_failed_objects_of_every_kind_are_told_with_their_way_out(tmp_path: Path) -> None:
    notifier, file = told(tmp_path, "{{ needs | length }} {{ needs_message }}", at_least="{{ word }}")
    notifier({"word": "failed"})
    lines = file.read_text().splitlines()
    assert lines[0] == "4 4 objects need attention: 4 failed."
    assert lines[1].startswith("failed: replicated table shop/shop.payments is failed since ")
    assert "  airflow tidemark replications errors shop --object shop.payments" in lines
    said = file.read_text()
    assert all(f"failed: stream {name} is " in said for name in ("clicks", "returns", "stock"))


def test_the_worst_come_first_and_the_others_are_counted(tmp_path: Path) -> None:
    notifier, file = told(tmp_path, "{{ needs_message }}", at_least="stopped", most=2)
    notifier({})
    lines = [line for line in file.read_text().splitlines() if not line.startswith("  ")]
    assert [line.partition(":")[0] for line in lines[1:3]] == ["failed", "failed"]
    total = int(lines[0].split()[0])
    assert total > 10
    assert lines[3] == f"{total - 2} objects more: airflow tidemark overview"


def test_a_kind_alone_is_told_in_slacks_markup_by_the_triggerer(tmp_path: Path) -> None:
    notifier, file = told(tmp_path, "{{ needs_slack }}", kind="pipe", at_least="stopped")
    asyncio.run(notifier.async_notify({}))
    head, *lines = file.read_text().splitlines()
    assert head == "2 objects need attention: 1 warning, 1 stopped."
    assert next(line for line in lines if line.startswith("*")).startswith("*warning*: ")
    assert "a file was skipped" in lines


def test_nothing_is_told_if_nothing_is_as_bad(tmp_path: Path) -> None:
    notifier, file = told(tmp_path, "{{ needs_message }}", kind="pipe", at_least="failed")
    notifier({})
    assert not file.exists()


def test_words_that_do_not_exist_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="failed, warning, stopped"):
        NeedingObjectsNotifier(at_least="bad")
    with pytest.raises(InvalidArgument, match="replicated_table"):
        NeedingObjectsNotifier(kind="table")
