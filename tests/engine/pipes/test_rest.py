"""Pipes over HTTP: programs elsewhere name files, and read what became of them."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import httpx
import pytest
import requests
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.engine.pipes.desk import Desk
from tests.engine.pipes.served import Program, Serving, app_of
from tidemark.client.ingest_service import ServiceClient
from tidemark.errors import IngestServiceRefused
from tidemark.lake.delta_log import DeltaLog
from tidemark.pipes.driver.files_table import FilesTable
from tidemark.pipes.model.events import KEPT, Event
from tidemark.pipes.model.files import FileSource

pytestmark = pytest.mark.spark

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
COPY = "COPY INTO db.t FROM @s FILE_FORMAT = (TYPE = CSV)"


@pytest.fixture
def serving(desk: Desk, tmp_path: Path) -> Iterator[Serving]:
    desk.table("id INT, name STRING")
    desk.ask(f"CREATE PIPE db.p AS {COPY}")
    made = Serving(desk, tmp_path)
    made.grant(app="secret: db.p", other="foreign: other.*", all="all: *.* *")
    made.write()
    with made.run() as found:
        yield found


@pytest.fixture
def program(serving: Serving) -> Iterator[Program]:
    with serving.program() as made:
        yield made


def waiting(desk: Desk, pipe: str = "db.p") -> int:
    return int(json.loads(desk.one(f"SELECT SYSTEM$PIPE_STATUS('{pipe}')")[0])["pendingFileCount"])


def test_named_files_are_loaded_by_the_next_run_and_reported(serving: Serving, program: Program) -> None:
    desk = serving.desk
    desk.put(a="1,a\n2,b\n", b="3,c\nx,d\n")
    before = desk.now()
    answer = program.insert(
        params={"requestId": "r 1"}, json={"files": [{"path": "a.csv", "size": 8}, {"path": "b.csv"}]}
    )
    assert (answer.status_code, answer.json()) == (200, {"requestId": "r 1", "status": "SUCCESS"})
    early = program.report()
    assert (early["files"], early["statistics"], early["completeResult"]) == ([], {"activeFilesCount": 2}, True)
    assert desk.lake.run_pipe("db.p").files == 2
    report = program.report(early["nextBeginMark"])
    assert (report["pipe"], report["completeResult"], report["statistics"]) == ("db.p", True, {"activeFilesCount": 0})
    good, bad = report["files"]
    for one in (good, bad):
        assert before.isoformat() < one.pop("timeReceived").replace("Z", "999+00:00") < one.pop("lastInsertTime")
    same = {"stageLocation": f"file://{desk.files}/", "complete": True, "errorLimit": 1, "rowsParsed": 2}
    assert good == {**same, "path": "a.csv", "fileSize": 8, "status": "LOADED", "rowsInserted": 2, "errorsSeen": 0}
    assert bad.pop("firstError") == "Numeric value 'x' is not recognized"
    assert bad == {
        **same,
        "path": "b.csv",
        "fileSize": 0,
        "status": "LOAD_FAILED",
        "rowsInserted": 0,
        "errorsSeen": 1,
        "firstErrorLineNum": 2,
        "firstErrorCharacterPos": 1,
        "firstErrorColumnName": "id",
    }
    again = program.report(report["nextBeginMark"])
    assert (again["files"], again["nextBeginMark"]) == ([], report["nextBeginMark"])
    assert desk.rows() == [(1, "a"), (2, "b")]


def test_a_name_is_loaded_once_however_often_it_is_named(serving: Serving, program: Program) -> None:
    serving.desk.put(a="1,a\n")
    for _ in range(2):
        assert program.insert("a.csv", "a.csv").status_code == 200
    assert waiting(serving.desk) == 1
    serving.desk.lake.run_pipe("db.p")
    assert program.insert("a.csv").status_code == 200
    assert serving.desk.lake.run_pipe("db.p").files == 0
    assert serving.desk.rows() == [(1, "a")]


def test_a_file_need_not_be_there_before_it_is_loaded(serving: Serving, program: Program) -> None:
    assert program.insert("late.csv", "never.csv").status_code == 200
    serving.desk.put(late="1,a\n")
    serving.desk.lake.run_pipe("db.p")
    found = {one["path"]: (one["status"], one.get("systemError")) for one in program.report()["files"]}
    assert found["late.csv"] == ("LOADED", None)
    assert found["never.csv"][0] == "LOAD_FAILED"
    assert "no longer exists" in str(found["never.csv"][1])


@pytest.mark.parametrize("form", ["json", "json gzip", "text", "text with \\r\\n"])
def test_names_come_as_json_or_as_lines_of_text(serving: Serving, program: Program, form: str) -> None:
    names = ["x/a b.csv", "x/100%.csv", "x/ä😀.csv"]
    headers = {"Content-Type": "application/json" if form.startswith("json") else "text/plain; charset=utf-8"}
    body = json.dumps({"files": [{"path": name, "size": 4} for name in names]}).encode()
    if form.startswith("text"):
        body = ("\r\n" if "r" in form[4:] else "\n").join(names).encode() + b"\n"
    if form.endswith("gzip"):
        body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
    for name in names:
        serving.desk.write(name, "1,a\n")
    assert program.insert(json=None, content=body, headers=headers).status_code == 200
    assert serving.desk.lake.run_pipe("db.p").files_loaded == 3


def test_a_bad_list_is_refused_with_its_place_and_nothing_is_queued(serving: Serving, program: Program) -> None:
    json_type, text = {"Content-Type": "application/json"}, {"Content-Type": "text/plain"}
    for body, headers, status, problem in (
        (b"{", json_type, 400, "not JSON"),
        (b'{"files": [{"path": "good"}, {"path": 7}]}', json_type, 400, "files[1].path"),
        (b'{"files": [{"path": "good"}, {"path": "a/../../b"}]}', json_type, 400, "without . and .."),
        (b"good\n" + b"x" * 1_025, text, 400, "line 2"),
        (b"good", {"Content-Type": "text/csv"}, 400, "neither application/json nor text/plain"),
        (b"good", {**text, "Content-Encoding": "br"}, 400, "neither gzip nor zstd"),
        (b"x" * (2 << 20), text, 413, "Send less"),
    ):
        refused = program.insert(json=None, content=body, headers=headers)
        assert (refused.status_code, problem in refused.json()["message"]) == (status, True), refused.text
    assert program.report()["statistics"] == {"activeFilesCount": 0}


def test_a_bad_question_is_refused_with_its_parameter(program: Program) -> None:
    for what, params, argument in (
        ("insertReport", {"beginMark": "yesterday"}, "beginMark"),
        ("insertReport", {"requestId": "r" * 1_001}, "requestId"),
        ("loadHistoryScan", {}, "startTimeInclusive"),
        ("loadHistoryScan", {"startTimeInclusive": "tomorrow"}, "startTimeInclusive"),
        ("loadHistoryScan", {"startTimeInclusive": "0001-01-01T00:00:00+14:00"}, "startTimeInclusive"),
        ("loadHistoryScan", {"startTimeInclusive": "2026-01-01", "endTimeExclusive": "x"}, "endTimeExclusive"),
    ):
        refused = program.ask(what, **params)
        assert (refused.status_code, refused.json()["error"]) == (400, "InvalidArgument")
        assert refused.json()["message"].startswith(argument)


def test_names_that_the_pattern_leaves_out_are_answered(serving: Serving) -> None:
    desk = serving.desk
    desk.ask(f"CREATE OR REPLACE PIPE db.p AS {COPY.replace('@s', '@s/in/')} PATTERN = '.*[.]csv'")
    serving.write()
    desk.write("in/a.csv", "1,a\n")
    with serving.program() as program:
        answer = program.insert("a.csv", "a.txt", "_hidden.csv").json()
        assert answer["unmatchedPatternFirstNFiles"] == ["a.txt", "_hidden.csv"]
        assert program.insert("b.txt").json()["status"] == "SUCCESS"
    desk.lake.run_pipe("db.p")
    assert desk.rows() == [(1, "a")]


def test_each_token_uses_its_own_pipes(serving: Serving) -> None:
    def asked(token: str | None, pipe: str = "db.p", what: str = "insertReport") -> tuple[int, str]:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        method = "POST" if what == "insertFiles" else "GET"
        answer = httpx.request(method, f"{serving.address}/v1/data/pipes/{pipe}/{what}", headers=headers, timeout=60)
        return answer.status_code, answer.json().get("error", "")

    for what in ("insertFiles", "insertReport", "loadHistoryScan"):
        assert asked(None, what=what) == (401, "IngestUnauthenticated")
        assert asked("guess", what=what) == (401, "IngestUnauthenticated")
        assert asked("foreign", what=what) == (403, "PipeForbidden")
        assert asked("secret", "db.nowhere", what=what) == (403, "PipeForbidden")
        assert asked("all", "db.nowhere", what=what) == (404, "PipeNotFound")
    assert asked("secret", "DB.P")[0] == 200
    assert asked("all", 'db."p"') == (404, "PipeNotFound")
    assert asked("all", 'a"') == (400, "InvalidArgument")
    serving.grant(app="renewed: db.*")
    assert [asked("secret")[0], asked("renewed")[0]] == [401, 200]


def test_a_pipe_is_served_as_the_store_has_it(serving: Serving) -> None:
    desk = serving.desk
    assert not serving.write()
    assert serving.pipes.stat().st_mode & 0o777 == 0o600
    with serving.program("all", "q") as program:
        assert program.insert("a.csv").status_code == 404
        desk.ask(f"CREATE PIPE q AS {COPY}")
        assert serving.write()
        assert program.insert("a.csv").status_code == 200
        desk.ask("DROP STAGE s")
        serving.write()
        refused = program.insert("b.csv")
        assert (refused.status_code, refused.json()["error"]) == (503, "PipeStalled")
        assert "There is no stage s" in refused.json()["message"]
        assert program.report()["statistics"] == {"activeFilesCount": 1}
        desk.ask("DROP PIPE q")
        serving.write()
        assert program.insert("a.csv").status_code == 404
        serving.pipes.write_text("half of a fi")
        assert program.insert("a.csv").status_code == 404


def test_requests_that_come_together_are_one_commit(serving: Serving) -> None:
    queue = f"{serving.desk.root}/db/p__files"

    def insert(number: int) -> int:
        with serving.program() as program:
            return program.insert(*(f"{number}_{one}.csv" for one in range(10))).status_code

    assert insert(0) == 200
    before = DeltaLog.open(queue).head()
    with ThreadPoolExecutor(20) as pool:
        assert set(pool.map(insert, range(1, 41))) == {200}
    assert DeltaLog.open(queue).head() - before <= 12
    assert waiting(serving.desk) == 410


def test_a_queue_that_is_too_long_is_429_with_a_time_to_wait(desk: Desk, tmp_path: Path) -> None:
    desk.table("id INT, name STRING")
    desk.ask(f"CREATE PIPE db.p AS {COPY}")
    serving = Serving(desk, tmp_path)
    serving.grant(app="secret: db.p")
    serving.write()

    def insert(number: int) -> httpx.Response:
        with serving.program() as program:
            return program.insert(*(f"{number}_{one}.csv" for one in range(8)))

    with serving.run(most_waiting=10), ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(insert, range(8)))
        busy = [one for one in answers if one.status_code == 429]
        assert busy
        assert {one.status_code for one in answers} == {200, 429}
        assert busy[0].json()["error"] == "PipeBusy"
        assert int(busy[0].headers["Retry-After"]) >= 1
        assert waiting(desk) == 8 * (8 - len(busy))
        with ServiceClient(serving.address, "secret") as client:
            assert client.insert_files("db.p", ["z.csv"])["status"] == "SUCCESS"


def test_a_report_has_the_last_ten_minutes_and_says_if_loads_were_missed(serving: Serving, program: Program) -> None:
    desk = serving.desk
    first = program.report()["nextBeginMark"]
    marks = []
    for number in range(3):
        desk.put(**{f"f{number}": f"{number},a\n"})
        program.insert(f"f{number}.csv")
        desk.lake.run_pipe("db.p")
        marks.append(program.report()["nextBeginMark"])
    assert [one["path"] for one in program.report(first)["files"]] == ["f0.csv", "f1.csv", "f2.csv"]
    assert [one["path"] for one in program.report(marks[0])["files"]] == ["f1.csv", "f2.csv"]
    desk.late = timedelta(minutes=11)
    late = program.report(marks[0])
    assert (late["files"], late["completeResult"], late["nextBeginMark"]) == ([], False, marks[2])
    assert program.report(marks[2])["completeResult"]
    assert program.report()["completeResult"]


def test_a_mark_of_another_pipe_of_the_name_shows_all_loads(serving: Serving, program: Program) -> None:
    desk = serving.desk
    desk.put(a="1,a\n")
    program.insert("a.csv")
    desk.lake.run_pipe("db.p")
    mark = program.report()["nextBeginMark"]
    desk.ask("DROP PIPE db.p")
    desk.ask(f"CREATE PIPE db.p AS {COPY}")
    serving.write()
    program.insert("a.csv")
    desk.lake.run_pipe("db.p")
    report = program.report(mark)
    assert ([one["path"] for one in report["files"]], report["completeResult"]) == (["a.csv"], False)
    assert report["nextBeginMark"] != mark


def test_loads_between_two_times_are_read_to_the_end_in_several_answers(
    serving: Serving, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemark.pipes.driver.service.reports.MOST_REPORTED", 3)
    desk, start = serving.desk, datetime.now(UTC).isoformat()
    for batch in (("a", "b"), ("c", "d"), ("e", "f", "g", "h")):
        desk.put(**dict.fromkeys(batch, "1,a\n"))
        program.insert(*(f"{name}.csv" for name in batch))
        desk.lake.run_pipe("db.p")
    seen: list[list[str]] = []
    answer: dict[str, Any] = {"completeResult": False, "rangeEndTime": start}
    while not answer["completeResult"]:
        answer = program.history(answer["rangeEndTime"])
        seen.append([one["path"][0] for one in answer["files"]])
    assert seen == [["a", "b"], ["c", "d"], ["e", "f", "g", "h"]]
    assert answer["rangeStartTime"] == answer["rangeEndTime"] == answer["files"][0]["lastInsertTime"]
    none = program.history(start, start)
    assert (none["files"], none["completeResult"]) == ([], True)
    assert "rangeStartTime" not in none
    assert none["startTimeInclusive"] == none["endTimeExclusive"]


def test_a_client_calls_the_same_and_hears_refusals_in_words(serving: Serving) -> None:
    desk = serving.desk
    desk.put(a="1,a\n")
    with desk.lake.ingest_service(serving.address, "secret") as client:
        assert client.insert_files("db.p", {"a.csv": 4})["status"] == "SUCCESS"
        answer = client.insert_files("db.p", ["b.csv"], request_id="r")
        assert answer == {"requestId": "r", "status": "SUCCESS"}
        desk.lake.run_pipe("db.p")
        report = client.insert_report("db.p")
        assert [one["path"] for one in report["files"]] == ["a.csv", "b.csv"]
        assert client.insert_report("db.p", begin_mark=report["nextBeginMark"])["files"] == []
        hour = timedelta(hours=1)
        found = client.load_history("db.p", datetime.now(UTC) - hour, datetime.now(UTC) + hour)
        assert [one["fileSize"] for one in found["files"]] == [4, 0]
        with pytest.raises(IngestServiceRefused, match="may not use pipe other"):
            client.insert_files("other", ["a.csv"])
        with pytest.raises(IngestServiceRefused, match="5,001 files"):
            client.insert_files("db.p", [str(number) for number in range(5_001)])


def test_storage_that_fails_is_503_and_the_files_can_be_sent_again(serving: Serving, program: Program) -> None:
    queue = serving.desk.root / "db" / "p__files"
    assert program.insert("a.csv").status_code == 200
    log = queue / "_delta_log"
    os.rename(log, queue / "away")
    log.write_text("no directory")
    refused = program.insert("b.csv")
    assert refused.status_code == 503, refused.text
    log.unlink()
    os.rename(queue / "away", log)
    assert program.insert("b.csv").status_code == 200
    assert waiting(serving.desk) == 2


def test_a_run_that_plans_a_file_while_it_is_named_loads_it_once(desk: Desk) -> None:
    desk.table("id INT, name STRING")
    desk.ask(f"CREATE PIPE db.p AUTO_INGEST = TRUE AS {COPY}")
    desk.put(a="1,a\n")
    assert desk.lake.run_pipe("db.p").files == 1
    queue = FilesTable.open(desk.spark, f"{desk.root}/db/p__files", {}, kept=KEPT)
    queued = {"event": Event.QUEUED.value, "file": "a.csv", "size": 4}
    queue.append([{**queued, "source": FileSource.INSERT_FILES.value}], desk.now())  # the look for it came before
    assert waiting(desk) == 0
    assert desk.lake.run_pipe("db.p").files == 0
    queue.append([{**queued, "source": FileSource.REFRESH.value}], desk.now())
    assert waiting(desk) == 1


def test_the_document_describes_what_is_answered(desk: Desk, tmp_path: Path) -> None:
    desk.table("id INT, name STRING")
    desk.ask(f"CREATE PIPE p AS {COPY}")
    serving = Serving(desk, tmp_path)
    serving.grant(app="secret: *")
    serving.write()
    codes: dict[str, set[int]] = {"insertFiles": set(), "insertReport": set(), "loadHistoryScan": set()}
    with app_of(serving) as app, TestClient(app, headers={"Authorization": "Bearer secret"}) as client:
        found: list[Any] = list(schemathesis.openapi.from_dict(app.openapi()).get_all_operations())
        operations = [one.ok() for one in found]
        for operation in (one for one in operations if one.path.startswith("/v1/data/pipes")):
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

                @given(case=operation.as_strategy(generation_mode=mode))
                @settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
                def call(case: Any) -> None:
                    sent = requests.Request(**case.as_transport_kwargs(base_url="http://testserver")).prepare()
                    name = quote(str(case.path_parameters["pipe"]), safe="")
                    url = str(sent.url).replace(f"/pipes/{name}/", "/pipes/p/")
                    headers, body = (
                        {"Content-Type": str(sent.headers.get("Content-Type", ""))},
                        cast("bytes", sent.body),
                    )
                    answer = client.request(str(sent.method), url, content=body, headers=headers)
                    codes[case.path.rpartition("/")[2]].add(answer.status_code)
                    case.validate_response(answer, checks=CHECKS)

                call()
    assert all(400 in seen for seen in codes.values())
    assert 200 in codes["insertFiles"] & codes["insertReport"]
