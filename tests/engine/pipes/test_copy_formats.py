"""COPY INTO: files of XML, texts of another encoding, and headers without a name of the table."""

from __future__ import annotations

import pytest

from tests.engine.pipes.desk import Desk
from tidemark.errors import CopyRefused

pytestmark = pytest.mark.spark

CSV = "COPY INTO db.t FROM @s FILES = ('{file}') FILE_FORMAT = (TYPE = CSV {options}) {tail}"
NAMES = "PARSE_HEADER = TRUE"
BY_NAME = "MATCH_BY_COLUMN_NAME = CASE_INSENSITIVE"


def test_elements_of_xml_are_rows_by_the_names_of_their_members(desk: Desk) -> None:
    desk.table("id BIGINT, name STRING")
    desk.write("a.xml", "<all><row><id>1</id><NAME>Ann</NAME></row><row><id>x</id></row><row><id>3</id></row></all>")
    xml = f"COPY INTO db.t FROM @s FILE_FORMAT = (TYPE = XML ROW_TAG = 'row') {BY_NAME} ON_ERROR = CONTINUE"
    (done,) = desk.ask(xml)
    assert (done.status, done.rows_parsed, done.errors_seen) == ("PARTIALLY_LOADED", 3, 1)
    assert done.first_error_column_name == "id"
    assert desk.rows() == [(1, "Ann"), (3, None)]


def test_texts_of_another_encoding_and_headers_of_other_columns_load_nothing_by_mistake(desk: Desk) -> None:
    desk.table("id INT, name STRING")
    desk.write("latin.csv", "1,Zoë\n2,ann\n".encode("latin-1"))
    desk.write("header.csv", "key,label\n1,a\n")
    desk.write("half.csv", "label,ID\nx,7\n")
    (bad,) = desk.ask(
        CSV.format(file="latin.csv", options="", tail="ON_ERROR = CONTINUE VALIDATION_MODE = RETURN_ERRORS")
    )
    assert (bad.line, "UTF8" in bad.error) == (1, True)
    assert desk.copied(CSV.format(file="latin.csv", options="ENCODING = 'ISO-8859-1'", tail="")) == {
        "latin.csv": "LOADED"
    }
    with pytest.raises(CopyRefused, match="the files have key, label, the table has id, name"):
        desk.lake.sql(CSV.format(file="header.csv", options=NAMES, tail=BY_NAME))
    assert desk.copied(CSV.format(file="half.csv", options=NAMES, tail=BY_NAME)) == {"half.csv": "LOADED"}
    assert desk.rows() == [(1, "Zoë"), (2, "ann"), (7, None)]
