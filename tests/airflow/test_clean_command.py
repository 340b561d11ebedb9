"""`airflow tidemark clean`: what the dead have left goes, on this host and in the lake, and nothing else."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.command_line import run_airflow
from tests.airflow.test_job_files import a_job, set_time
from tests.object_store import BUCKET, ObjectStore, running_object_store
from tidemark.cli.clean import clean
from tidemark.jobs.workspace import Workspace

pytestmark = pytest.mark.airflow


@pytest.fixture
def places(airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Where jobs lie, and the workspace of the lake."""
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", f"sqlite:///{tmp_path}/control.db")
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    monkeypatch.setenv("TIDEMARK_JOBS_ROOT", str(tmp_path / "jobs"))
    jobs, workspace = tmp_path / "jobs", tmp_path / "lake" / "_tidemark"
    for place in (jobs, workspace / "jobs", workspace / "archives", workspace / "log_only"):
        place.mkdir(parents=True)
    return jobs, workspace


def ran(capsys: pytest.CaptureFixture[str], **given: Any) -> dict[str, tuple[int, int]]:
    """What → (removed, left), added up."""
    capsys.readouterr()
    asked = {"keep": "7d", "dry_run": False, "conn_id": "tidemark_default", "output": "json", "verbose": False}
    clean(Namespace(**{**asked, **given}))
    found: dict[str, tuple[int, int]] = {}
    for row in json.loads(capsys.readouterr().out):
        removed, left = found.get(row["what"], (0, 0))
        found[row["what"]] = (removed + int(row["removed"]), left + int(row["left"]))
    return found


def fill(jobs: Path, workspace: Path, written: datetime) -> None:
    """A dead job here and one where jobs lay formerly, an archive, a log-only table, half of one, an answer, a job in a
    cluster and a note of one.
    """
    a_job(jobs, written=written)
    a_job(workspace / "jobs", written=written)
    archive = workspace / "archives" / f"tidemark-{written:%Y%m%d}.zip"
    archive.write_text("")
    table = Workspace(workspace.as_uri(), f"dead {written:%d}")
    uri = table.new_directory()
    table.write(f"{uri}/_delta_log/0.json", b"{}")
    half = workspace / "log_only" / f"half-{written:%d}"
    half.mkdir()
    answer = workspace / "results" / f"killed-{written:%d}"
    answer.mkdir(parents=True)
    (answer / "part-0.parquet").write_bytes(b"PAR1")
    set_time(answer / "part-0.parquet", written)
    set_time(answer, written)
    noted = [workspace / place / f"of {written:%d}" for place in ("cluster_jobs", "cluster_tasks")]
    for directory in noted:
        directory.mkdir(parents=True)
        (directory / "one").write_text("")
        set_time(directory / "one", written)
    for file in (archive, half, *noted, *Path(uri.removeprefix("file://")).rglob("*.json")):
        set_time(file, written)


def everything(*places: Path) -> list[str]:
    return sorted(str(file) for place in places for file in place.rglob("*"))


def test_what_is_old_goes_what_is_young_stays_and_a_second_run_finds_nothing(
    places: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    now = datetime.now(UTC)
    fill(*places, now - timedelta(days=2))
    young = everything(*places)
    fill(*places, now - timedelta(days=8))
    both = everything(*places)
    gone = {"jobs": (2, 0), "archives": (1, 0), "log-only tables": (2, 0), "answers of queries": (1, 0)}
    gone |= {"jobs in a cluster": (1, 0), "notes of jobs": (1, 0)}
    assert ran(capsys, dry_run=True) == gone
    assert everything(*places) == both
    assert ran(capsys) == gone
    assert everything(*places) == young
    assert set(ran(capsys).values()) == {(0, 0)}
    assert ran(capsys, keep="1d") == gone
    assert [one for one in everything(*places) if Path(one).is_file()] == []


@pytest.mark.parametrize("keep", ["0d", "12h", "-7d", "", "7", "0", "999999d"])
def test_what_could_be_alive_is_not_asked_for(places: tuple[Path, Path], keep: str) -> None:
    fill(*places, datetime.now(UTC) - timedelta(days=80))
    before = everything(*places)
    with pytest.raises(SystemExit, match="at least 1d"):
        clean(Namespace(keep=keep, dry_run=False, conn_id="tidemark_default", output="json", verbose=False))
    assert everything(*places) == before


def test_what_cannot_be_judged_is_told_and_left_and_the_others_go(
    places: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    jobs, workspace = places
    old = datetime.now(UTC) - timedelta(days=8)
    odd = a_job(jobs, written=old)
    (jobs / odd / "alive").symlink_to("/dev/null")
    for file in (jobs / odd / "alive", jobs / odd):
        set_time(file, old)
    fill(jobs, workspace, old)
    with pytest.raises(SystemExit, match="column `problem`"):
        ran(capsys)
    here, former, *_ = json.loads(capsys.readouterr().out)
    assert (here["removed"], here["left"], former["removed"], former["left"]) == ("1", "1", "1", "0")
    assert here["problem"].startswith(f"{jobs / odd}: ")
    assert (jobs / odd / "spec.json").exists()


def test_a_link_in_the_lake_goes_and_what_it_leads_to_stays(
    places: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    precious = tmp_path / "elsewhere" / "precious"
    precious.parent.mkdir()
    precious.write_text("")
    link = places[1] / "log_only" / "link"
    link.symlink_to(precious.parent)
    for file in (precious, link):
        set_time(file, datetime.now(UTC) - timedelta(days=8))
    assert ran(capsys)["log-only tables"] == (1, 0)
    assert not link.is_symlink()
    assert precious.exists()


@pytest.fixture
def kept_by_airflow(places: tuple[Path, Path], tmp_path: Path) -> Iterator[Path]:
    """The workspace of the lake of `tidemark_default`, which is in the metadata database."""
    extra = {"control_store": f"sqlite:///{tmp_path}/kept.db", "lake_root": str(tmp_path / "kept")}
    added = ("--conn-type", "tidemark", "--conn-extra", json.dumps(extra))
    run_airflow("connections", "add", "tidemark_default", *added)
    yield tmp_path / "kept" / "_tidemark"
    run_airflow("connections", "delete", "tidemark_default")


def test_answers_go_from_the_lake_of_a_connection_that_airflow_keeps_and_from_no_other(
    places: tuple[Path, Path], kept_by_airflow: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = datetime.now(UTC) - timedelta(days=8)
    for workspace in (places[1], kept_by_airflow):
        answer = workspace / "results" / "killed"
        answer.mkdir(parents=True)
        (answer / "part-0.parquet").write_bytes(b"PAR1")
        for file in (answer / "part-0.parquet", answer):
            set_time(file, old)
    assert ran(capsys)["answers of queries"] == (1, 0)
    assert list((kept_by_airflow / "results").iterdir()) == []
    assert len(everything(places[1] / "results")) == 2


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with running_object_store() as running:
        yield running


def test_log_only_tables_of_an_object_store_are_swept_too(
    airflow_home: Path,
    store: ObjectStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from tidemark.lake.orphans import sweep_directories

    extra = {"lake_root": f"s3://{BUCKET}/clean", "storage_options": store.options}
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps({"conn_type": "tidemark", "extra": extra}))
    monkeypatch.setenv("TIDEMARK_JOBS_ROOT", str(tmp_path / "jobs"))
    root = f"s3://{BUCKET}/clean/_tidemark"
    for number in range(3):
        table = Workspace(root, f"dead{number}", options=store.options)
        table.write(f"{table.new_directory()}/_delta_log/0.json", b"{}")
    assert ran(capsys)["log-only tables"] == (0, 0)  # they are young
    later = datetime.now(UTC) + timedelta(days=8)
    assert len(sweep_directories(f"{root}/log_only", store.options, older_than=later, dry_run=True).removed) == 3
    assert len(store.keys("clean/_tidemark/")) == 3
    assert len(sweep_directories(f"{root}/log_only", store.options, older_than=later).removed) == 3
    assert store.keys("clean/_tidemark/") == []


def test_a_lake_that_does_not_answer_is_told_after_what_lies_here_is_gone(
    airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"key": "k", "secret": "s", "endpoint_url": "http://127.0.0.1:9"}
    extra = {"lake_root": "s3://nowhere/lake", "storage_options": options}
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps({"conn_type": "tidemark", "extra": extra}))
    monkeypatch.setenv("TIDEMARK_JOBS_ROOT", str(tmp_path / "jobs"))
    (tmp_path / "jobs").mkdir()
    a_job(tmp_path / "jobs", written=datetime.now(UTC) - timedelta(days=8))
    with pytest.raises(SystemExit):
        ran(capsys)
    rows = json.loads(capsys.readouterr().out)
    for row, room in zip(rows[-2:], ("log_only", "results"), strict=True):
        assert f"s3://nowhere/lake/_tidemark/{room}" in row["problem"]
    assert list((tmp_path / "jobs").iterdir()) == []
