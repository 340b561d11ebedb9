"""Stages and file formats by SQL."""

from __future__ import annotations

import pytest

from tests.engine.pipes.desk import Desk
from tidemark.errors import (
    FileFormatNotFound,
    NotYetSupported,
    StageExists,
    StageLocationMissing,
    StageNotFound,
)

pytestmark = pytest.mark.spark


def test_stages_are_made_altered_shown_described_and_dropped(desk: Desk) -> None:
    url = str(desk.files)
    assert desk.status(f"CREATE STAGE db.landing URL = '{url}' COMMENT = 'in'") == (
        "Stage area db.landing successfully created."
    )
    with pytest.raises(StageExists):
        desk.lake.sql(f"CREATE STAGE DB.LANDING URL = '{url}'")
    assert "already exists" in desk.status(f"CREATE STAGE IF NOT EXISTS db.landing URL = '{url}'")
    (shown,) = desk.ask("SHOW STAGES LIKE 'LAND%' IN SCHEMA db")
    assert (shown.name, shown.schema_name, shown.url, shown.type) == ("landing", "db", f"file://{url}", "EXTERNAL")
    assert [row.name for row in desk.ask("SHOW STAGES")] == ["landing", "s"]
    desk.ask("ALTER STAGE db.landing SET FILE_FORMAT = (TYPE = CSV FIELD_DELIMITER = '|') COMMENT = 'out'")
    described = {row.property: row.property_value for row in desk.ask("DESCRIBE STAGE db.landing")}
    assert (described["FIELD_DELIMITER"], described["URL"]) == ("|", f'["file://{url}"]')
    desk.ask("ALTER STAGE db.landing RENAME TO db.inbox")
    assert desk.status("DROP STAGE db.inbox") == "db.inbox successfully dropped."
    with pytest.raises(StageNotFound):
        desk.lake.sql("DROP STAGE db.inbox")
    assert "already dropped" in desk.status("DROP STAGE IF EXISTS db.inbox")
    with pytest.raises(NotYetSupported, match="URL"):
        desk.lake.sql("CREATE STAGE internal")


def test_file_formats_are_made_altered_shown_described_and_dropped(desk: Desk) -> None:
    desk.ask("CREATE FILE FORMAT f TYPE = CSV FIELD_DELIMITER = '|' SKIP_HEADER = 1 COMMENT = 'pipes'")
    (shown,) = desk.ask("SHOW FILE FORMATS")
    assert (shown.name, shown.type, shown.comment, '"FIELD_DELIMITER": "|"' in shown.format_options) == (
        "f",
        "CSV",
        "pipes",
        True,
    )
    desk.ask("ALTER FILE FORMAT f SET SKIP_HEADER = 2")
    described = {row.property: tuple(row)[1:] for row in desk.ask("DESC FILE FORMAT f")}
    assert described["TYPE"] == ("String", "CSV", "CSV")
    assert described["SKIP_HEADER"] == ("Integer", "2", "0")
    desk.ask("CREATE OR REPLACE FILE FORMAT f TYPE = JSON STRIP_OUTER_ARRAY = TRUE")
    assert desk.one("SHOW FILE FORMATS").type == "JSON"
    desk.ask("ALTER FILE FORMAT f RENAME TO g")
    desk.ask("DROP FILE FORMAT g")
    with pytest.raises(FileFormatNotFound):
        desk.lake.sql("DESC FILE FORMAT g")


def test_the_format_of_a_stage_counts_where_the_statement_says_none(desk: Desk) -> None:
    desk.table("id INT, name STRING")
    desk.put(a="1;x\n")
    desk.lake.create_file_format("semi", "CSV", {"FIELD_DELIMITER": ";"})
    desk.lake.create_stage("formed", str(desk.files), file_format="semi")
    desk.ask("COPY INTO db.t FROM @formed")
    assert desk.rows() == [(1, "x")]


def test_files_of_a_stage_are_listed(desk: Desk) -> None:
    desk.put(b="12", a="1", y__c="123")
    desk.write("_hidden.csv", "x")
    listed = desk.ask("LIST @s")
    root = f"file://{desk.files}"
    assert [(row.name, row.size) for row in listed] == [
        (f"{root}/a.csv", 1),
        (f"{root}/b.csv", 2),
        (f"{root}/y/c.csv", 3),
    ]
    assert all(row.last_modified is not None for row in listed)
    assert [row.size for row in desk.ask("LS @s/y/")] == [3]
    assert [row.size for row in desk.ask("LIST @s PATTERN = '.*b[.]csv'")] == [2]
    desk.lake.create_stage("gone", f"{desk.files}/nowhere")
    with pytest.raises(StageLocationMissing):
        desk.lake.sql("LIST @gone")
