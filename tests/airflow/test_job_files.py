"""Files of jobs: where nobody else can write, and gone when they are nobody's. No Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from tests.airflow.test_spark_job import KEY, RESULT, spec_in
from tidemark.errors import DirectoryNotPrivate, InvalidArgument, JobLeftNoResult
from tidemark.hooks._files import private_directory
from tidemark.hooks._job_files import alive, sweep_hourly, sweep_job_files
from tidemark.hooks.spark_job import SparkJob
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.streams.model.transaction_jobs import WRITE, StatementsRequest
from tidemark.warm_spark.scratch import make_scratch, remove_scratch

pytestmark = pytest.mark.airflow
StandIn = Callable[[str], Path]

NOW = datetime(2026, 3, 1, tzinfo=UTC)
WEEK = timedelta(days=7)
PARTS = ("", ".result.json", ".result.json.progress", ".result.json.17.half", ".cancel")


def a_job(place: Path, *, written: datetime, parts: tuple[str, ...] = PARTS) -> str:
    """Files of a job, all written then."""
    job = str(uuid4())
    for part in parts:
        if part:
            (place / f"{job}{part}").write_text("{}")
        else:
            (place / job / "spark-warehouse").mkdir(parents=True)
            for name in ("spec.json", "spark.log", "tidemark-1.zip"):
                (place / job / name).write_text("x")
    for file in (*place.glob(f"{job}/*"), *place.glob(f"{job}*")):
        set_time(file, written)
    return job


def set_time(file: Path, written: datetime) -> None:
    os.utime(file, (written.timestamp(), written.timestamp()), follow_symlinks=False)


def left_in(place: Path) -> list[str]:
    return sorted(entry.name for entry in place.iterdir())


@pytest.mark.parametrize("parts", [PARTS, ("",), (".cancel",), (".result.json.17.half",), (".result.json", ".cancel")])
def test_what_a_dead_job_left_goes_by_its_age_and_a_second_run_finds_nothing(
    tmp_path: Path, parts: tuple[str, ...]
) -> None:
    old = a_job(tmp_path, written=NOW - timedelta(days=8), parts=parts)
    young = a_job(tmp_path, written=NOW - timedelta(days=6), parts=parts)
    swept = sweep_job_files(tmp_path, NOW, NOW - WEEK, dry_run=True)
    assert swept.removed == (str(tmp_path / old),)
    assert (tmp_path / f"{old}{parts[0]}").exists()
    assert sweep_job_files(tmp_path, NOW, NOW - WEEK) == swept
    assert sweep_job_files(tmp_path, NOW, NOW - WEEK).removed == ()
    assert left_in(tmp_path) == sorted(f"{young}{part}" for part in parts)


def test_the_temporary_files_of_a_killed_driver_go_after_a_day_and_with_its_other_files(tmp_path: Path) -> None:
    ages = {"young": 0.9, "dead": 1.1, "old": 8, "alive": 80}
    jobs = {name: a_job(tmp_path, written=NOW) for name in ages}
    scratch = {name: make_scratch(tmp_path / job) for name, job in jobs.items()}
    for name, days in ages.items():
        (scratch[name] / "jar").touch()
        for file in (*tmp_path.glob(f"{jobs[name]}/*"), *tmp_path.glob(f"{jobs[name]}*")):
            set_time(file, NOW - timedelta(days=days))
    with alive(tmp_path / jobs["alive"]):
        age(tmp_path / jobs["alive"])
        sweep_job_files(tmp_path, NOW, NOW - WEEK)
    assert {name for name in ages if scratch[name].exists()} == {"young", "alive"}
    remove_scratch(tmp_path / jobs["young"])
    remove_scratch(tmp_path / jobs["alive"])
    assert not any(one.exists() for one in scratch.values())


@pytest.mark.parametrize("part", ["spark.log", ".result.json.progress", ".cancel"])
def test_a_job_of_which_any_file_is_young_keeps_all(tmp_path: Path, part: str) -> None:
    job = a_job(tmp_path, written=NOW - timedelta(days=80))
    set_time(tmp_path / (f"{job}{part}" if part.startswith(".") else f"{job}/{part}"), NOW - timedelta(days=1))
    assert sweep_job_files(tmp_path, NOW, NOW - WEEK).removed == ()
    assert len(left_in(tmp_path)) == len(PARTS)


def test_a_job_that_a_process_holds_is_alive_however_old_its_files_are(tmp_path: Path) -> None:
    job = a_job(tmp_path, written=NOW - timedelta(days=80))
    with alive(tmp_path / job):
        age(tmp_path / job)
        assert sweep_job_files(tmp_path, NOW, NOW - WEEK).removed == ()
    assert sweep_job_files(tmp_path, NOW, NOW - WEEK).removed == (str(tmp_path / job),)


def test_a_driver_whose_worker_is_gone_holds_its_job_itself(tmp_path: Path) -> None:
    job = a_job(tmp_path, written=NOW - timedelta(days=80))
    with alive(tmp_path / job) as inherited:
        driver = subprocess.Popen(["sleep", "60"], pass_fds=inherited)
    try:
        age(tmp_path / job)
        assert sweep_job_files(tmp_path, NOW, NOW - WEEK).removed == ()
    finally:
        driver.kill()
        driver.wait()
    assert sweep_job_files(tmp_path, NOW, NOW - WEEK).removed == (str(tmp_path / job),)


def age(directory: Path) -> None:
    for file in (*directory.iterdir(), directory):
        set_time(file, NOW - timedelta(days=80))


def test_files_that_are_no_jobs_stay_and_links_are_not_followed(tmp_path: Path) -> None:
    place, precious = tmp_path / "jobs", tmp_path / "precious"
    place.mkdir()
    (precious / "kept").mkdir(parents=True)
    (precious / "secret.properties").write_text("kept")
    names = ("notes.txt", ".swept", "orders", f"{uuid4()}.txt", f"{uuid4()}x", "result.json")
    for name in names:
        (place / name).write_text("x")
    link = place / str(uuid4())
    link.symlink_to(precious)
    for file in (*place.iterdir(), *precious.iterdir(), precious):
        set_time(file, NOW - timedelta(days=80))
    assert sweep_job_files(place, NOW, NOW - WEEK).removed == (str(link),)
    assert left_in(place) == sorted(names)
    assert left_in(precious) == ["kept", "secret.properties"]
    (tmp_path / "linked").symlink_to(place)
    assert sweep_job_files(tmp_path / "linked", NOW, NOW).removed == ()
    assert sweep_job_files(tmp_path / "nowhere", NOW, NOW).removed == ()


def test_secrets_that_a_killed_worker_left_go_when_they_were_surely_read(tmp_path: Path) -> None:
    job = a_job(tmp_path, written=NOW - timedelta(hours=2))
    secrets = tmp_path / job / "secret.properties"
    secrets.write_text("spark.hadoop.fs.s3a.secret.key=s3cr3t")
    set_time(secrets, NOW - timedelta(minutes=50))
    sweep_job_files(tmp_path, NOW, NOW - WEEK)
    assert secrets.exists()
    sweep_job_files(tmp_path, NOW + timedelta(minutes=20), NOW - WEEK)
    assert not secrets.exists()
    assert (tmp_path / job / "spark.log").exists()


def test_one_run_looks_at_a_bounded_number_and_hours_at_all(tmp_path: Path) -> None:
    for _ in range(40):
        a_job(tmp_path, written=NOW - timedelta(days=8), parts=("",))
    first = len(sweep_job_files(tmp_path, NOW, NOW - WEEK, at_most=10).removed)
    assert 0 < first < 30
    for hour in range(1, 40):
        sweep_job_files(tmp_path, NOW + timedelta(hours=hour), NOW - WEEK, at_most=10)
    assert left_in(tmp_path) == []


def test_a_worker_sweeps_once_an_hour_where_jobs_lie_and_lay(tmp_path: Path) -> None:
    here, former = private_directory(tmp_path / "jobs"), tmp_path / "lake" / "_tidemark" / "jobs"
    former.mkdir(parents=True)
    now = datetime.now(UTC)
    for _ in range(2):
        a_job(here, written=now - timedelta(days=8))
        a_job(former, written=now - timedelta(days=8))
        sweep_hourly((here, former, tmp_path / "nowhere"), now)
    assert (len(left_in(here)), len(left_in(former))) == (1 + len(PARTS), len(PARTS))
    sweep_hourly((here, former), now + timedelta(hours=2))
    assert (left_in(here), left_in(former)) == ([".swept"], [])


def test_two_sweeps_at_once_and_an_owner_who_ends_meanwhile_are_borne(tmp_path: Path) -> None:
    code = (
        "import sys; from datetime import *; from pathlib import Path; "
        "from tidemark.hooks._job_files import sweep_job_files; "
        f"now = datetime.fromtimestamp({NOW.timestamp()}, UTC); "
        f"print(sweep_job_files(Path(sys.argv[1]), now, now).left)"
    )
    for _ in range(300):
        a_job(tmp_path, written=NOW - timedelta(days=8))
    both = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [process.communicate(timeout=60)[0] for process in both] == ["{}\n", "{}\n"]
    assert left_in(tmp_path) == []


def test_jobs_lie_in_a_directory_of_the_workers_user_alone(
    airflow_home: Path, spark_submit: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    place = Path(TidemarkHook().job_paths().exchange)
    assert place == airflow_home / f"tidemark-jobs-{os.getuid()}"
    assert tmp_path / "lake" not in place.parents
    place.mkdir(mode=0o777, exist_ok=True)
    place.chmod(0o777)
    spark_submit(f'stat -c %a "$(dirname "$spec")" "$(dirname "$(dirname "$spec")")" > {tmp_path}/modes; {RESULT}')
    job = str(uuid4())
    spec = (
        TidemarkHook()
        .job_paths()
        .spec(
            WRITE,
            job,
            StatementsRequest((), ()),
            store_id="the store",
            deadline=datetime.now(UTC) + timedelta(minutes=1),
            key=KEY,
        )
    )
    SparkJob(TidemarkHook().settings).run(spec)
    assert (tmp_path / "modes").read_text() == "700\n700\n"
    assert [name for name in left_in(place) if name.startswith(job)] == []


def test_a_place_that_another_could_write_is_refused_before_anything_starts(
    airflow_home: Path, spark_submit: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = spark_submit(RESULT)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").write_text("")
    for name, problem in (
        ("link", "is a link or a file"),
        ("file", "cannot be made private"),
        ("file/x", "cannot be made"),
    ):
        monkeypatch.setenv("TIDEMARK_JOBS_ROOT", str(tmp_path / name))
        with pytest.raises(DirectoryNotPrivate, match=problem) as refused:
            SparkJob(TidemarkHook().settings).run(spec_in(tmp_path))
        assert "TIDEMARK_JOBS_ROOT" in str(refused.value)
    assert not started.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")
def test_a_place_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir(mode=0o700)
    os.chown(tmp_path / "jobs", 12345, -1)
    with pytest.raises(DirectoryNotPrivate, match="belongs to the user 12345"):
        private_directory(tmp_path / "jobs")


def test_another_place_is_named_by_an_absolute_path(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_JOBS_ROOT", "/var/lib/jobs of mine")
    assert TidemarkHook().job_paths().exchange == "/var/lib/jobs of mine"
    monkeypatch.setenv("TIDEMARK_JOBS_ROOT", "s3://bucket/jobs")
    with pytest.raises(InvalidArgument, match="absolute path"):
        _ = TidemarkHook().settings


def test_nothing_that_lies_in_the_lake_is_run_or_believed(
    airflow_home: Path, spark_submit: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may write the lake plants an archive, a result and a spec under the names that were used there."""
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    monkeypatch.setenv("TIDEMARK_JOBS_ROOT", str(tmp_path / "jobs"))
    hook, job = TidemarkHook(), str(uuid4())
    started = spark_submit('echo "$spec"; exit 0')
    spec = hook.job_paths().spec(
        WRITE,
        job,
        StatementsRequest((), ()),
        store_id="s",
        deadline=datetime.now(UTC) + timedelta(minutes=1),
        key=KEY,
    )
    for planted in (tmp_path / "lake/_tidemark/jobs", tmp_path / "lake/_tidemark/archives"):
        planted.mkdir(parents=True)
        (planted / f"{job}.result.json").write_text(json.dumps({"report": {}, "error": None}))
    with pytest.raises(JobLeftNoResult):
        SparkJob(hook.settings).run(spec)
    assert str(tmp_path / "lake") not in started.read_text()
