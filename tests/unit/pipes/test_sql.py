"""Statements of loads, stages, file formats and pipes, as text."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tidemark.errors import NotYetSupported, SqlCompilationError
from tidemark.pipes.model.copying import ErrorMode, MatchBy, OnError, Validation, ValidationMode
from tidemark.pipes.model.formats import FileFormat, FileType
from tidemark.pipes.planning.sql import parse_pipe_sql
from tidemark.pipes.planning.statements import (
    AlterFileFormat,
    AlterPipe,
    AlterStage,
    CopyInto,
    CreateFileFormat,
    CreatePipe,
    CreateStage,
    Describe,
    DropObject,
    FormatRef,
    GivenOptions,
    ListStage,
    ObjectKind,
    PipeForceResume,
    PipeStatus,
    RefreshPipe,
    RenameObject,
    ShowObjects,
    StageSource,
    UriSource,
)

CSV, JSON = FileFormat(), FileFormat(FileType.JSON)
LONG = "9" * 5_000  # Python reads no number of so many digits
S = StageSource("s")


def of_type(type: FileType, **options: object) -> FormatRef:
    return FormatRef(format=FileFormat(type, options))


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("COPY INTO t FROM @s", CopyInto("t", S)),
        ("-- all\ncopy into db.t from @db.s;", CopyInto("db.t", StageSource("db.s"))),
        ("COPY INTO delta.`/x` FROM @s", CopyInto("delta.`/x`", S)),
        ('COPY INTO t (a, "b c") FROM @s/2024/a-b', CopyInto("t", StageSource("s", "2024/a-b"), columns=("a", "b c"))),
        ("COPY INTO t FROM '@s/with blank/'", CopyInto("t", StageSource("s", "with blank/"))),
        ("COPY INTO t FROM 's3://b/p/' FILES = ('a', 'b')", CopyInto("t", UriSource("s3://b/p/"), files=("a", "b"))),
        ("COPY INTO t FROM @s PATTERN = '.*[.]csv'", CopyInto("t", S, pattern=".*[.]csv")),
        (r"COPY INTO t FROM @s PATTERN = '.*\\.csv'", CopyInto("t", S, pattern=r".*\.csv")),
        ("COPY INTO t FROM @s PREFIX = 'a'", CopyInto("t", S, prefix="a")),
        ("COPY INTO t FROM @s FILE_FORMAT = (FORMAT_NAME = 'db.f')", CopyInto("t", S, format=FormatRef("db.f"))),
        ("COPY INTO t FROM @s FILE_FORMAT = f", CopyInto("t", S, format=FormatRef("f"))),
        (
            r"COPY INTO t FROM @s FILE_FORMAT = (TYPE = CSV, FIELD_DELIMITER = '\t' NULL_IF = ('\\N', 'a''b'))",
            CopyInto("t", S, format=of_type(FileType.CSV, FIELD_DELIMITER="\t", NULL_IF=("\\N", "a'b"))),
        ),
        (
            "COPY INTO t FROM (SELECT x.$1, x.$2::INT FROM @s/a.csv x)",
            CopyInto("t", StageSource("s", "a.csv"), select="x.$1, x.$2::INT", alias="x"),
        ),
        (
            "COPY INTO t FROM @s VALIDATION_MODE = RETURN_10_ROWS",
            CopyInto("t", S, validation=Validation(ValidationMode.ROWS, 10)),
        ),
        (
            "COPY INTO t FROM @s VALIDATION_MODE = 'RETURN_ALL_ERRORS'",
            CopyInto("t", S, validation=Validation(ValidationMode.ALL_ERRORS)),
        ),
    ],
)
def test_copy_into_is_read(text: str, statement: object) -> None:
    assert parse_pipe_sql(text) == statement


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("ON_ERROR = CONTINUE", GivenOptions(on_error=OnError(ErrorMode.CONTINUE))),
        ("ON_ERROR = skip_file", GivenOptions(on_error=OnError(ErrorMode.SKIP_FILE))),
        ("ON_ERROR = SKIP_FILE_3", GivenOptions(on_error=OnError(ErrorMode.SKIP_FILE, limit=3))),
        ("ON_ERROR = 'SKIP_FILE_3%'", GivenOptions(on_error=OnError(ErrorMode.SKIP_FILE, percent=3.0))),
        ("ON_ERROR = SKIP_FILE_3%", GivenOptions(on_error=OnError(ErrorMode.SKIP_FILE, percent=3.0))),
        ("SIZE_LIMIT = 10 PURGE = TRUE", GivenOptions(size_limit=10, purge=True)),
        ("FORCE = TRUE LOAD_UNCERTAIN_FILES = FALSE", GivenOptions(force=True, load_uncertain_files=False)),
        ("MATCH_BY_COLUMN_NAME = CASE_INSENSITIVE", GivenOptions(match_by=MatchBy.CASE_INSENSITIVE)),
        ("ENFORCE_LENGTH = FALSE", GivenOptions(truncate_columns=True)),
        ("TRUNCATECOLUMNS = TRUE", GivenOptions(truncate_columns=True)),
        ("RETURN_FAILED_ONLY = TRUE", GivenOptions(return_failed_only=True)),
        ("ENABLE_SCHEMA_EVOLUTION = TRUE", GivenOptions(enable_schema_evolution=True)),
    ],
)
def test_each_option_of_copy_into_is_read(option: str, expected: GivenOptions) -> None:
    assert parse_pipe_sql(f"COPY INTO t FROM @s {option}") == CopyInto("t", S, options=expected)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        (
            "CREATE STAGE db.st URL = 's3://b/x/' FILE_FORMAT = (TYPE = JSON) COMMENT = 'it''s'",
            CreateStage("db.st", "s3://b/x/", FormatRef(format=JSON), "it's"),
        ),
        (
            "CREATE OR REPLACE STAGE st URL = '/x' FILE_FORMAT = (FORMAT_NAME = f)",
            CreateStage("st", "/x", FormatRef("f"), or_replace=True),
        ),
        ("ALTER STAGE IF EXISTS st SET URL = '/y'", AlterStage("st", "/y", if_exists=True)),
        ("ALTER STAGE st RENAME TO db.st2", RenameObject(ObjectKind.STAGE, "st", "db.st2")),
        ("DROP STAGE IF EXISTS st", DropObject(ObjectKind.STAGE, "st", True)),
        ("SHOW STAGES LIKE 'a%' IN SCHEMA db", ShowObjects(ObjectKind.STAGE, "a%", schema="db")),
        ("SHOW STAGES IN ACCOUNT", ShowObjects(ObjectKind.STAGE)),
        ("DESC STAGE st", Describe(ObjectKind.STAGE, "st")),
        ("LIST @st/a PATTERN = '.*x'", ListStage(StageSource("st", "a"), ".*x")),
        ("ls '@st/a b'", ListStage(StageSource("st", "a b"))),
        (
            "CREATE FILE FORMAT IF NOT EXISTS f TYPE = 'CSV' SKIP_HEADER = 1 COMMENT = 'x'",
            CreateFileFormat("f", FileFormat(FileType.CSV, {"SKIP_HEADER": 1}), "x", if_not_exists=True),
        ),
        ("CREATE OR REPLACE FILE\n  FORMAT f", CreateFileFormat("f", CSV, or_replace=True)),
        ("ALTER FILE FORMAT f SET SKIP_HEADER = 2", AlterFileFormat("f", {"SKIP_HEADER": 2})),
        ("ALTER FILE FORMAT f RENAME TO g", RenameObject(ObjectKind.FILE_FORMAT, "f", "g")),
        ("DROP FILE FORMAT f", DropObject(ObjectKind.FILE_FORMAT, "f")),
        ("SHOW FILE FORMATS IN DATABASE d", ShowObjects(ObjectKind.FILE_FORMAT, database="d")),
        ("DESCRIBE FILE FORMAT f", Describe(ObjectKind.FILE_FORMAT, "f")),
        (
            "CREATE PIPE p AUTO_INGEST = TRUE NOTIFICATION_CHANNEL = '/n' AS\nCOPY INTO t FROM @s ;",
            CreatePipe("p", "COPY INTO t FROM @s", CopyInto("t", S), True, "/n"),
        ),
        ("ALTER PIPE p SET PIPE_EXECUTION_PAUSED = TRUE", AlterPipe("p", paused=True)),
        ("ALTER PIPE p SET COMMENT = 'x'", AlterPipe("p", comment="x")),
        ("ALTER PIPE p UNSET COMMENT", AlterPipe("p", unset_comment=True)),
        (
            "ALTER PIPE p REFRESH PREFIX = 'd1/' MODIFIED_AFTER = '2018-07-30T13:56:46-07:00'",
            RefreshPipe("p", "d1/", datetime(2018, 7, 30, 20, 56, 46, tzinfo=UTC)),
        ),
        (
            "ALTER PIPE IF EXISTS p REFRESH MODIFIED_AFTER = '2018-07-30'",
            RefreshPipe("p", "", datetime(2018, 7, 30, tzinfo=UTC), True),
        ),
        ("DROP PIPE db.p", DropObject(ObjectKind.PIPE, "db.p")),
        ("SHOW PIPES LIKE 'x'", ShowObjects(ObjectKind.PIPE, "x")),
        ("DESCRIBE PIPE p", Describe(ObjectKind.PIPE, "p")),
        ("SELECT SYSTEM$PIPE_STATUS('db.p')", PipeStatus("db.p")),
        ("select system$pipe_force_resume('p')", PipeForceResume("p")),
        ("SELECT SYSTEM$PIPE_FORCE_RESUME('p', 'staleness_check_override')", PipeForceResume("p", True)),
    ],
)
def test_statements_of_stages_formats_and_pipes_are_read(text: str, statement: object) -> None:
    assert parse_pipe_sql(text) == statement


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "CREATE TABLE t AS SELECT 1",
        "DESCRIBE pipe",
        "SHOW CHANNELS",
        "SELECT validate FROM t",
        "DROP TABLE stage",
        "it's",
    ],
)
def test_other_statements_are_left_to_others(text: str) -> None:
    assert parse_pipe_sql(text) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("COPY INTO t FROM @s ON_EROR = CONTINUE", "line 1, column 21: .*similar names: ON_ERROR"),
        ("COPY INTO t FROM @s ON_ERROR = SKIP", "ON_ERROR is one of"),
        ("COPY INTO t FROM @s ON_ERROR = SKIP_FILE_0", "at least 1"),
        *((f"COPY INTO t FROM @s ON_ERROR = 'SKIP_FILE_{n}'", "ON_ERROR is one of") for n in ("٣", "9" * 10, LONG)),
        *((f"COPY INTO t FROM @s VALIDATION_MODE = 'RETURN_{n}_ROWS'", "VALIDATION_MODE is") for n in ("9" * 10, LONG)),
        ("COPY INTO t FROM @s ON_ERROR = 'SKIP_FILE_101%'", "at most 100"),
        ("COPY INTO t FROM @s FORCE = TRUE FORCE = FALSE", "FORCE is given twice"),
        ("COPY INTO t FROM @s FORCE = 'yes'", "FORCE is TRUE or FALSE"),
        ("COPY INTO t FROM @s SIZE_LIMIT = 0", "number of bytes"),
        ("COPY INTO t FROM @s ENFORCE_LENGTH = TRUE TRUNCATECOLUMNS = TRUE", "contradicts"),
        ("COPY INTO t FROM @s FILE_FORMAT = (TYPE = CSV FIELD_DELIMETER = ',')", "column 47.*FIELD_DELIMITER"),
        ("COPY INTO t FROM @s FILE_FORMAT = (FORMAT_NAME = f TYPE = CSV)", "FORMAT_NAME excludes TYPE"),
        ("COPY INTO t FROM @s PATTERN = '['", "not a regular expression"),
        ("COPY INTO t FROM 'x'", "a location is"),
        ("COPY INTO t FROM @s//x", "single quotes"),
        ("COPY INTO t (a, A) FROM @s", "named twice"),
        ("COPY INTO t FROM (SELECT $1 FROM @s WHERE $1 = 1)", "WHERE is not allowed"),
        ("COPY INTO t FROM (SELECT $1 FROM @s GROUP BY $1)", "GROUP BY is not allowed"),
        ("COPY INTO t FROM (SELECT $1 FROM @s x JOIN y)", "JOIN is not allowed"),
        ("COPY INTO t FROM (SELECT COUNT($1) FROM @s)", "column 26: .*one row at a time"),
        ("COPY INTO t FROM (SELECT y.$1 FROM @s x)", "y is not the alias"),
        ("COPY INTO t FROM (SELECT $1 FROM @s) MATCH_BY_COLUMN_NAME = CASE_SENSITIVE", "excludes a transformation"),
        ("CREATE TEMPORARY STAGE st URL = '/x'", "no temporary"),
        ("CREATE OR REPLACE STAGE IF NOT EXISTS st URL = '/x'", "excludes IF NOT EXISTS"),
        ("ALTER STAGE st SET", "an option"),
        ("ALTER FILE FORMAT f SET TYPE = JSON", "does not change"),
        ("ALTER PIPE p REFRESH MODIFIED_AFTER = 'soon'", "MODIFIED_AFTER is a time"),
        ("CREATE PIPE p AS SELECT 1", "expected COPY"),
        ("CREATE PIPE p AUTOINGEST = TRUE AS COPY INTO t FROM @s", "there are AUTO_INGEST"),
        ("SELECT SYSTEM$PIPE_STATUS(p)", "in quotes"),
        ("DROP PIPE p; DROP PIPE q", "one statement at a time"),
    ],
)
def test_a_mistake_has_its_place_in_the_text_and_says_the_way_out(text: str, said: str) -> None:
    with pytest.raises(SqlCompilationError, match=said):
        parse_pipe_sql(text)


@pytest.mark.parametrize(
    "option",
    [
        "FILES = ('a')",
        "FORCE = TRUE",
        "SIZE_LIMIT = 1",
        "PURGE = TRUE",
        "RETURN_FAILED_ONLY = TRUE",
        "LOAD_UNCERTAIN_FILES = TRUE",
        "VALIDATION_MODE = RETURN_ERRORS",
        "ON_ERROR = ABORT_STATEMENT",
    ],
)
def test_options_without_a_meaning_in_a_pipe_are_refused_by_name(option: str) -> None:
    with pytest.raises(SqlCompilationError, match=f"{option.split()[0]}.* is not allowed in a pipe"):
        parse_pipe_sql(f"CREATE PIPE p AS COPY INTO t FROM @s {option}")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("COPY INTO @s FROM t", "COPY INTO a location"),
        ("COPY INTO 's3://b/x' FROM (SELECT 1)", "COPY INTO a location"),
        ("COPY INTO t FROM @~/x", "@~"),
        ("COPY INTO t FROM @%t", "@%table"),
        ("COPY INTO t FROM @s LOAD_MODE = ADD_FILES_COPY", "LOAD_MODE"),
        ("COPY INTO t FROM @s INCLUDE_METADATA = (a = METADATA$FILENAME)", "INCLUDE_METADATA"),
        ("COPY INTO t FROM 's3://b/' CREDENTIALS = (AWS_KEY_ID = 'a')", "CREDENTIALS"),
        ("PUT file:///tmp/a.csv @s", "PUT"),
        ("GET @s file:///tmp", "GET"),
        ("REMOVE @s/x", "REMOVE"),
        ("rm @s/x", "RM"),
        ("SELECT * FROM TABLE(VALIDATE(t, JOB_ID => '_last'))", "VALIDATE"),
        ("SELECT * FROM TABLE(VALIDATE_PIPE_LOAD(PIPE_NAME => 'p'))", "VALIDATE_PIPE_LOAD"),
        ("CREATE STAGE st", "internal stage"),
        ("CREATE STAGE st URL = 's3://b' STORAGE_INTEGRATION = i", "STORAGE_INTEGRATION"),
        ("CREATE STAGE st URL = 's3://b' DIRECTORY = (ENABLE = TRUE)", "DIRECTORY"),
        ("CREATE STAGE st URL = 's3://b' ENCRYPTION = (TYPE = 'AWS_SSE_S3')", "ENCRYPTION"),
        ("CREATE OR ALTER STAGE st URL = 's3://b'", "CREATE OR ALTER"),
        ("CREATE PIPE p INTEGRATION = 'I' AS COPY INTO t FROM @s", "INTEGRATION"),
        ("CREATE PIPE p ERROR_INTEGRATION = i AS COPY INTO t FROM @s", "ERROR_INTEGRATION"),
        ("CREATE PIPE p AWS_SNS_TOPIC = 'a' AS COPY INTO t FROM @s", "AWS_SNS_TOPIC"),
    ],
)
def test_parts_of_the_source_system_without_a_counterpart_are_refused_by_name(text: str, name: str) -> None:
    with pytest.raises(NotYetSupported, match=name):
        parse_pipe_sql(text)


def test_the_pipe_of_the_how_to_looks_for_new_files_as_its_text_says() -> None:
    page = (Path(__file__).parents[3] / "provider/docs/how-to/load-files.md").read_text()
    (text,) = re.findall(r"```sql\n(CREATE PIPE .*?)```", page, re.DOTALL)
    pipe = parse_pipe_sql(text)
    assert isinstance(pipe, CreatePipe)
    assert (pipe.name, pipe.auto_ingest) == ("db.orders_pipe", True)
