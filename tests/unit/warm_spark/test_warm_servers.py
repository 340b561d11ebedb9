"""The files by which tasks share a server: slots, the record, one start for all, and the keeper's end of it all."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError

from tidemark.change_streams.model.backfill import BACKFILL_TABLE
from tidemark.change_streams.model.jobs import CAPTURE_CHANGES
from tidemark.clustering.model.jobs import RECLUSTER
from tidemark.errors import WarmSparkNotStarted
from tidemark.model.codec import to_json
from tidemark.replication.model.jobs import APPLY_EVENTS, BACKFILL_OBJECT, BACKFILL_OBJECTS, CAPTURE_EVENTS
from tidemark.streams.worker.limits import JobPaths
from tidemark.warm_spark import keeper
from tidemark.warm_spark.home import (
    ALIVE,
    LOG,
    ServerHome,
    end_server,
    is_alive,
    last_sign,
    living_servers,
    note_process,
    write_pulse,
)
from tidemark.warm_spark.keeper import Keeper
from tidemark.warm_spark.locks import is_held, lock_now, locked
from tidemark.warm_spark.records import ORDER as ORDER_FILE
from tidemark.warm_spark.records import ServerOrder, ServerRecord
from tidemark.warm_spark.scratch import make_scratch, remove_scratch, with_scratch
from tidemark.warm_spark.slots import Slot, busy_slots, jobs_in_slots, take_slot
from tidemark.warm_spark.start import start_server, take

NOW = datetime(2026, 11, 26, tzinfo=UTC)
ORDER = ServerOrder(slots=2, packages=("a:b:1",))
PLAYED_SERVER = """
import os, sys, time
sys.path[:0] = {path!r}
from datetime import UTC, datetime
from pathlib import Path
from tidemark.model.codec import from_json
from tidemark.warm_spark.home import ServerHome
from tidemark.warm_spark.records import ORDER, ServerOrder, ServerRecord
directory = Path({directory!r})
order = from_json(ServerOrder, (directory / ORDER).read_text())
ServerHome(Path({home!r})).put(ServerRecord(str(directory), 1, os.getpid(), order, datetime.now(UTC), "4", "t"))
time.sleep(600)
"""


class PlayedService:
    """The JVM's side of a keeper."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.refuses = False
        self.heap = (10, 100)
        self.up = True

    def end_session(self, session_id: str) -> None:
        if self.refuses:
            raise Py4JError("no")
        self.ended.append(session_id)

    def cancel_orphans(self) -> int:
        return 0

    def heap_in_use(self) -> tuple[int, int]:
        return self.heap

    def answers(self) -> bool:
        return self.up


@pytest.fixture
def home(tmp_path: Path) -> Iterator[ServerHome]:
    (tmp_path / "home").mkdir()
    yield ServerHome(tmp_path / "home")
    for record, _ in living_servers(tmp_path):
        end_server(record)


@pytest.fixture
def record(home: ServerHome) -> Iterator[ServerRecord]:
    """A server of this process: it lives as long as the test."""
    directory = home.root / "one"
    directory.mkdir()
    number = lock_now(directory / ALIVE)
    assert number is not None
    made = ServerRecord(str(directory), 1, os.getpid(), ORDER, NOW, "4", "secret")
    home.put(made)
    yield made
    os.close(number)


def test_slots_are_as_many_as_ordered_and_come_back(record: ServerRecord) -> None:
    first, _ = _slot(record), _slot(record)
    assert (take_slot(record), busy_slots(record.place, 2)) == (None, 2)
    first.release()
    assert _slot(record).file == first.file


def test_a_slot_says_which_job_has_it_until_it_is_given_back(record: ServerRecord) -> None:
    slots = [_slot(record), _slot(record)]
    slots[0].claim("session", "dag/run/täsk " * 10)
    assert (slots[0].session_left, jobs_in_slots(record.place, 2)) == ("session", ["dag/run/täsk " * 10])
    slots[0].clear()
    assert (slots[0].session_left, jobs_in_slots(record.place, 2)) == ("", [])


def test_long_jobs_leave_a_slot_to_others_whatever_was_taken_before(record: ServerRecord) -> None:
    wide = replace(record, order=replace(ORDER, slots=3))
    long_jobs = [take_slot(wide, is_long=True) for _ in range(3)]
    assert [one is not None for one in long_jobs] == [True, True, False]
    short = _slot(wide)
    assert take_slot(wide) is None
    short.release()
    assert take_slot(wide, is_long=True) is None


def test_a_long_job_takes_the_slot_of_a_server_that_has_one(record: ServerRecord) -> None:
    assert take_slot(replace(record, order=replace(ORDER, slots=1)), is_long=True) is not None


def test_backfills_are_long_jobs_and_captures_are_not() -> None:
    long_jobs: list[Any] = [BACKFILL_OBJECT, BACKFILL_OBJECTS, BACKFILL_TABLE, RECLUSTER]
    jobs = [*long_jobs, CAPTURE_EVENTS, CAPTURE_CHANGES, APPLY_EVENTS]
    paths = JobPaths("/lake/_tidemark", "/jobs")
    specs = [paths.spec(job, "one", {}, store_id="s", deadline=NOW, key=None) for job in jobs]
    assert [spec.is_long for spec in specs] == [True] * 4 + [False] * 3


def test_a_slot_whose_job_left_a_session_is_not_taken(record: ServerRecord) -> None:
    slot = _slot(record)
    slot.claim("session")
    slot.release()
    assert _slot(record).file != slot.file
    assert take_slot(record) is None


def test_only_a_server_that_lives_is_in_use(home: ServerHome, record: ServerRecord) -> None:
    assert home.running() == record
    (home.root / "dead").mkdir()
    home.put(replace(record, directory=str(home.root / "dead")))
    assert home.running() is None
    (home.root / "server.json").write_text('{"of": "another release"}')
    assert home.running() is None


def test_servers_of_another_host_that_shares_the_directory_are_not_listed(
    home: ServerHome, record: ServerRecord
) -> None:
    assert [one for one, _ in living_servers(home.root.parent)] == [record]
    home.put(replace(record, host="another"))
    assert list(living_servers(home.root.parent)) == []


def test_a_server_is_retired_once_and_never_its_successor(home: ServerHome, record: ServerRecord) -> None:
    home.retire(replace(record, directory="another"))
    assert home.running() == record
    home.retire(record)
    home.retire(record)
    assert home.running() is None
    assert is_alive(record)


def test_a_successor_that_comes_while_a_server_is_retired_stays_in_use(home: ServerHome, record: ServerRecord) -> None:
    (home.root / "two").mkdir()
    successor = replace(record, directory=str(home.root / "two"))
    number = lock_now(successor.place / ALIVE)
    assert number is not None
    threads: list[threading.Thread] = []

    class Met(ServerHome):
        """It meets the successor between the question whether a server is in use, and its retirement."""

        def uses(self, directory: str) -> bool:
            found = super().uses(directory)
            threads.append(threading.Thread(target=home.put, args=[successor]))
            threads[-1].start()
            threads[-1].join(0.5)
            return found

    Met(home.root).retire(record)
    for thread in threads:
        thread.join()
    assert home.running() == successor
    os.close(number)


def test_a_server_of_a_home_that_was_removed_is_retired(home: ServerHome, record: ServerRecord) -> None:
    ServerHome(home.root / "gone").retire(record)
    assert not (home.root / "gone").exists()


def test_nothing_of_the_dead_stays_but_the_last_logs(home: ServerHome, record: ServerRecord) -> None:
    scratch = [make_scratch(record.place)]
    for number in range(6):
        (home.root / f"dead-{number}").mkdir()
        (home.root / f"dead-{number}" / ALIVE).touch()
        scratch.append(make_scratch(home.root / f"dead-{number}"))
        os.utime(home.root / f"dead-{number}", (number, number))
    old, young = (home.root.parent / name for name in ("old", "young"))
    for other in (old, young):
        other.mkdir()
    os.utime(old, (0, 0))
    home.sweep(datetime.now(UTC))
    assert sorted(entry.name for entry in home.root.iterdir() if entry.is_dir()) == [
        "dead-3",
        "dead-4",
        "dead-5",
        "one",
    ]
    assert (old.exists(), young.exists()) == (False, True)
    assert [one.exists() for one in scratch] == [True] + 6 * [False]
    remove_scratch(record.place)


def test_temporary_files_of_dead_servers_go_from_all_homes_of_this_host(home: ServerHome, record: ServerRecord) -> None:
    scratch = {}
    for name in ("dead", "alive", "of another host"):
        place = home.root.parent / f"with {name}" / "one"
        place.mkdir(parents=True)
        (place / ALIVE).touch()
        note_process(place, 1)
        scratch[name] = make_scratch(place)
    (home.root.parent / "with of another host" / "one" / "process").write_text("1 elsewhere")
    with locked(home.root.parent / "with alive" / "one" / ALIVE, lambda: None):
        home.sweep(datetime.now(UTC))
    assert {name: one.exists() for name, one in scratch.items()} == {
        "dead": False,
        "alive": True,
        "of another host": True,
    }
    for name in scratch:
        remove_scratch(home.root.parent / f"with {name}" / "one")


def test_a_home_that_another_task_has_just_removed_is_empty_and_not_forgotten(tmp_path: Path) -> None:
    gone = ServerHome(tmp_path / "gone")
    assert (list(gone.servers()), gone.starting(), gone.is_forgotten(NOW)) == ([], [], False)


@pytest.mark.parametrize("name", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS", "OTHER"])
def test_a_directory_for_temporary_files_that_the_user_names_wins(name: str) -> None:
    given = {name: "-Xss8m -Djava.io.tmpdir=/big"}
    found = with_scratch(given, Path("/a b"))
    assert found == (given if name != "OTHER" else {**given, "SPARK_SUBMIT_OPTS": '"-Djava.io.tmpdir=/a b"'})
    assert with_scratch({"SPARK_SUBMIT_OPTS": "-Xss8m"}, Path("/a"))["SPARK_SUBMIT_OPTS"].startswith("-Xss8m ")


def test_ten_tasks_at_once_start_one_server(home: ServerHome) -> None:
    with ThreadPoolExecutor(10) as pool:
        started = list(pool.map(lambda _: _start(home, ORDER), range(10)))
    assert len({server.directory for server in started}) == 1
    assert len(list(home.servers())) == 1


def test_a_server_whose_task_was_killed_at_its_start_is_waited_for_and_no_second_one_starts(home: ServerHome) -> None:
    place = _left_at_its_start(home, _played(home.root / "left", home, sleeps=1))
    assert not is_held(home.lock)
    assert [_start(home, ORDER).place, *home.servers()] == [place, place]


def test_a_server_whose_task_was_killed_and_that_never_listens_is_killed_in_its_time(home: ServerHome) -> None:
    place = _left_at_its_start(home, "import time; time.sleep(600)")
    server = _start(home, replace(ORDER, starts_within=timedelta(seconds=2)))
    assert server.place != place
    assert not is_held(place / ALIVE)


def test_renewed_credentials_leave_two_idle_servers_at_most(home: ServerHome) -> None:
    family = replace(ORDER, family="a")
    with ExitStack() as held:
        kept = [_of_another_home(home, held, f"of-{n}", n, replace(ORDER, family="b")) for n in (8, 9)]
        old, newer = (_of_another_home(home, held, f"old-{n}", n, family) for n in (1, 2))
        _start(home, family)
        in_use = {record.place for record, takes_jobs in living_servers(home.root.parent) if takes_jobs}
    assert in_use >= {newer, *kept}
    assert old not in in_use
    assert len(in_use) == 4


def test_a_server_that_lacks_a_package_is_succeeded_by_one_that_has_all(home: ServerHome) -> None:
    first = _start(home, ORDER)
    second = _start(home, replace(ORDER, packages=("c:d:2",)))
    assert second.order.packages == ("a:b:1", "c:d:2")
    assert _start(home, ORDER) == second != first
    assert is_alive(first)


def test_a_task_waits_for_a_slot_and_says_so_once(home: ServerHome) -> None:
    order, said = replace(ORDER, slots=1), list[str]()
    spawn = _spawn(home)
    first = take(home, order, spawn, stop_if_due=lambda: None, say=said.append)
    threading.Timer(1.5, first.slot.release).start()
    began = time.monotonic()
    take(home, order, spawn, stop_if_due=lambda: None, say=said.append)
    assert time.monotonic() - began > 1.3
    assert [line for line in said if "waits for a slot: 1 of 1 slots" in line] == said[1:]


def test_a_long_job_says_that_the_slot_which_is_free_is_for_others(home: ServerHome) -> None:
    said, spawn = list[str](), _spawn(home)
    first = take(home, ORDER, spawn, stop_if_due=lambda: None, say=print, is_long=True)
    threading.Timer(1.5, first.slot.release).start()
    take(home, ORDER, spawn, stop_if_due=lambda: None, say=said.append, is_long=True)
    (line,) = said
    assert "1 of 2 slots of the warm Spark of this host are taken; the last is for short jobs" in line


def test_a_moment_in_which_the_keeper_holds_the_slots_is_not_called_a_wait(home: ServerHome) -> None:
    said, spawn = list[str](), _spawn(home)
    server = start_server(home, ORDER, spawn, stop_if_due=lambda: None, say=print)
    for slot in (_slot(server), _slot(server)):
        threading.Timer(0.4, slot.release).start()
    take(home, ORDER, spawn, stop_if_due=lambda: None, say=said.append)
    assert said == []


def test_a_server_that_hangs_while_a_task_waits_gives_way_to_another(home: ServerHome) -> None:
    said: list[str] = []
    spawn, silence = _spawn(home), timedelta(seconds=1)
    first = take(home, replace(ORDER, slots=1), spawn, stop_if_due=lambda: None, say=said.append)
    os.killpg(first.server.process_id, signal.SIGSTOP)
    second = take(home, replace(ORDER, slots=1), spawn, stop_if_due=lambda: None, say=said.append, silence=silence)
    assert second.server.directory != first.server.directory
    assert not is_alive(first.server)
    assert any("gave no sign of life" in line for line in said)


def test_a_task_waits_longer_for_a_server_that_gives_signs_of_life(home: ServerHome) -> None:
    spawn, silence = _spawn(home), timedelta(seconds=0.5)
    first = take(home, replace(ORDER, slots=1), spawn, stop_if_due=lambda: None, say=print)
    signs = iter(range(1, 1000))
    until = time.monotonic() + 1.5

    def give_a_sign() -> None:
        write_pulse(first.server.place, next(signs))
        if time.monotonic() > until:
            first.slot.release()

    second = take(home, replace(ORDER, slots=1), spawn, stop_if_due=give_a_sign, say=print, silence=silence)
    assert second.server == first.server


def test_a_task_that_is_told_to_stop_while_it_starts_leaves_no_server(home: ServerHome) -> None:
    asked = []

    def stop_if_due() -> None:
        asked.append(1)
        if len(asked) > 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        take(home, ORDER, _spawn(home, "time.sleep(600)"), stop_if_due=stop_if_due, say=print)
    (place,) = home.servers()
    assert not is_held(place / ALIVE)
    assert home.running() is None


def test_a_start_that_fails_has_the_end_of_its_log(home: ServerHome) -> None:
    with pytest.raises(WarmSparkNotStarted, match="exit code 3") as failed:
        take(
            home,
            ORDER,
            _spawn(home, "print('no memory', flush=True); sys.exit(3)"),
            stop_if_due=lambda: None,
            say=print,
        )
    assert failed.value.facts["tail"] == "no memory"


def test_a_start_that_fails_fails_all_that_waited_for_it_and_the_next_one_tries_again(home: ServerHome) -> None:
    spawn = _spawn(home, "print('no memory', flush=True); time.sleep(1.5); sys.exit(3)")

    def start(order: ServerOrder) -> WarmSparkNotStarted:
        with pytest.raises(WarmSparkNotStarted) as failed:
            start_server(home, order, spawn, stop_if_due=lambda: None, say=print)
        return failed.value

    with ThreadPoolExecutor(4) as pool:
        failures = list(pool.map(start, [ORDER] * 4))
    (place,) = home.servers()
    assert {one.facts["log"] for one in failures} == {str(place / LOG)}
    assert {one.facts["tail"] for one in failures} == {"no memory"}
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(start, [ORDER, replace(ORDER, packages=("c:d:2",))]))
    assert len(list(home.servers())) == 3


def test_a_keeper_ends_what_a_killed_job_has_left_and_then_itself(home: ServerHome, record: ServerRecord) -> None:
    service, order = PlayedService(), replace(ORDER, idle=timedelta(seconds=0.2))
    slot = _slot(record)
    slot.claim("left")
    slot.release()
    _keeper(service, home, replace(record, order=order)).keep()
    assert service.ended == ["left"]
    assert home.running() is None
    assert last_sign(record.place) > 0


def test_a_keeper_gives_up_a_server_that_does_not_end_a_session(
    home: ServerHome, record: ServerRecord, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(keeper, "_SECONDS_BETWEEN_LOOKS", 0)
    service, slot = PlayedService(), _slot(record)
    service.refuses = True
    slot.claim("left")
    slot.release()
    with pytest.raises(Py4JError):
        _keeper(service, home, record).keep()
    assert capsys.readouterr().out.count("Session left could not be ended: no") == 21


def test_a_keeper_stays_while_a_job_runs_and_ends_after_it_if_it_was_retired(
    home: ServerHome, record: ServerRecord
) -> None:
    slot = _slot(record)
    slot.claim("runs")
    keeping = threading.Thread(target=_keeper(PlayedService(), home, record).keep, daemon=True)
    keeping.start()
    home.retire(record)
    keeping.join(1.5)
    assert keeping.is_alive()
    slot.clear()
    slot.release()
    keeping.join(10)
    assert not keeping.is_alive()


def test_a_keeper_retires_a_server_whose_heap_stays_full(home: ServerHome, record: ServerRecord) -> None:
    service = PlayedService()
    service.heap = (80, 100)
    slot = _slot(record)
    slot.claim("full")
    slot.clear()
    slot.release()
    _keeper(service, home, record).keep()
    assert home.running() is None


def test_a_keeper_says_once_that_it_retires_its_server(
    home: ServerHome, record: ServerRecord, capsys: pytest.CaptureFixture[str]
) -> None:
    slot = _slot(record)
    old = replace(record, order=replace(ORDER, longest=timedelta(0)))
    keeping = threading.Thread(target=_keeper(PlayedService(), home, old).keep, daemon=True)
    keeping.start()
    keeping.join(1.3)
    assert keeping.is_alive()
    slot.release()
    keeping.join(10)
    assert capsys.readouterr().out.count("Retiring after") == 1


def test_a_log_that_cannot_be_shortened_ends_no_server(
    home: ServerHome, record: ServerRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "_LONGEST_LOG", 0)
    monkeypatch.setattr(keeper, "_KEPT_OF_LOG", 1)
    (record.place / LOG).write_text("a line")
    (record.place / f"{LOG}.1").mkdir()
    _keeper(PlayedService(), home, replace(record, order=replace(ORDER, idle=timedelta(0)))).keep()
    assert (record.place / LOG).read_text() == "a line"


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="a host without IPv6")
def test_nobody_else_listens_at_the_port_of_a_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        guard = keeper.guarded(port)
        assert guard is not None
        with guard, pytest.raises(OSError, match="in use"):
            socket.create_server(("::1", port), family=socket.AF_INET6)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("::1", port))
        with (
            socket.create_server(("::1", port), family=socket.AF_INET6),
            pytest.raises(OSError, match="in use"),
        ):
            keeper.guarded(port)


def test_a_server_that_does_not_listen_in_its_time_is_killed_and_the_time_is_named(home: ServerHome) -> None:
    order = ServerOrder(slots=2, packages=(), starts_within=timedelta(seconds=1))
    with pytest.raises(WarmSparkNotStarted, match="it did not listen within 1 s"):
        start_server(home, order, _spawn(home, "time.sleep(600)"), stop_if_due=lambda: None, say=print)
    (place,) = home.servers()
    assert not is_held(place / ALIVE)
    assert home.running() is None


def _keeper(service: Any, home: ServerHome, record: ServerRecord) -> Keeper:
    return Keeper(service, home, record)


def _start(home: ServerHome, order: ServerOrder) -> ServerRecord:
    return start_server(home, order, _spawn(home), stop_if_due=lambda: None, say=print)


def _spawn(home: ServerHome, instead: str | None = None) -> Any:
    """A Python process in the place of spark-submit."""

    @contextmanager
    def spawn(directory: Path, order: ServerOrder, alive: int) -> Iterator[subprocess.Popen[bytes]]:
        played = _played(directory, home)
        code = played if instead is None else f"import sys, time; {instead}"
        with (directory / LOG).open("wb") as log:
            yield subprocess.Popen(
                [sys.executable, "-c", code], stdout=log, stderr=log, pass_fds=(alive,), start_new_session=True
            )

    return spawn


def _played(directory: Path, home: ServerHome, sleeps: float = 0) -> str:
    played = PLAYED_SERVER.format(path=sys.path, directory=str(directory), home=str(home.root))
    return f"import time; time.sleep({sleeps}); {played.lstrip()}"


def _left_at_its_start(home: ServerHome, code: str) -> Path:
    """The directory of a server whose task was killed after it had started its process."""
    place = home.root / "left"
    place.mkdir()
    (place / ORDER_FILE).write_text(to_json(ORDER))
    alive = lock_now(place / ALIVE)
    assert alive is not None
    process = subprocess.Popen([sys.executable, "-c", code], pass_fds=(alive,), start_new_session=True)
    note_process(place, process.pid)
    os.close(alive)
    return place


def _of_another_home(home: ServerHome, held: ExitStack, name: str, minute: int, order: ServerOrder) -> Path:
    """The directory of a server in use, with other credentials; it lives as long as `held`."""
    place = home.root.parent / name / "one"
    place.mkdir(parents=True)
    number = lock_now(place / ALIVE)
    assert number is not None
    held.callback(os.close, number)
    started_at = NOW + timedelta(minutes=minute)
    ServerHome(place.parent).put(ServerRecord(str(place), 1, os.getpid(), order, started_at, "4", "t"))
    return place


def _slot(record: ServerRecord) -> Slot:
    slot = take_slot(record)
    assert slot is not None
    return slot
