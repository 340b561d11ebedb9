"""The Spark side travels as one zip that needs neither Tidemark nor Airflow where it arrives."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from tidemark.hooks._archive import spark_side_archive

IMPORT_FROM = """
import sys
sys.path = [{archive!r}] + [entry for entry in sys.path if not entry.endswith("provider")]
for blocked in ("airflow", "sqlalchemy", "alembic"):
    sys.modules[blocked] = None
import tidemark, tidemark.jobs.run, tidemark.streams.driver.job_write, tidemark.changes.driver.window
print(tidemark.__file__)
"""


def test_the_archive_is_complete_without_the_worker_side(tmp_path: Path) -> None:
    archive = spark_side_archive(tmp_path)
    code = IMPORT_FROM.format(archive=str(archive))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(archive))
    with zipfile.ZipFile(archive) as opened:
        names = [name.split("/") for name in opened.namelist()]
    assert not {parts[1] for parts in names} & {"control", "hooks", "operators", "cli", "client"}
    assert not {parts[2] for parts in names if len(parts) > 2} & {"store", "store.py", "worker", "worker.py"}


def test_equal_sources_make_one_file(tmp_path: Path) -> None:
    first = spark_side_archive(tmp_path)
    made = first.read_bytes()
    assert spark_side_archive(tmp_path) == first
    assert first.read_bytes() == made
    assert list(tmp_path.iterdir()) == [first]


def test_what_lay_there_under_the_archives_name_is_not_run(tmp_path: Path) -> None:
    honest = spark_side_archive(tmp_path)
    content = honest.read_bytes()
    elsewhere = tmp_path / "elsewhere"
    for plant in (lambda: honest.write_bytes(b"planted"), lambda: honest.symlink_to(elsewhere)):
        honest.unlink()
        plant()
        assert spark_side_archive(tmp_path).read_bytes() == content
        assert not honest.is_symlink()
    assert not elsewhere.exists()
