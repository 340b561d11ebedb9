"""Rows of text files: lines of CSV, documents of JSON, elements of XML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from tidemark.changes.driver.data_files import WHOLE_FILES
from tidemark.pipes.driver.blocks import BLOCK, FILE, ID, MODIFIED, placed
from tidemark.pipes.driver.projection import BAD, OPEN, RAW, SKIP
from tidemark.pipes.planning.readers import CsvRead, JsonRead, TextRead, XmlRead

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.readwriter import DataFrameReader

__all__ = ["NOT_TEXT", "VARIANT", "TextRows", "cleaned", "column", "without_texts"]

VARIANT = "_1"  # of a document or an element
NOT_TEXT = "Invalid UTF8 detected in string"
_REPLACEMENT = "\ufffd"
_CORRUPT = "__corrupt"
_BYTE_ORDER_MARK = "\ufeff"
_TAKES = "__takes"


def column(position: int) -> str:
    """The name of the n-th field of a line, from 1."""
    return f"_{position}"


@dataclass(frozen=True)
class TextRows:
    """Reads files of one text format. `width`: the number of fields of a line. `exact`: another number is an error.
    `trusted`: CSV files, as FILE has them, whose bytes are UTF-8 although they have the character U+FFFD.
    """

    spark: SparkSession
    read: TextRead
    width: int
    exact: bool
    trusted: frozenset[str] = frozenset()

    def rows(self, paths: Sequence[str]) -> DataFrame:
        """MODIFIED and CARRIED, then `column(n)` (string) of CSV, or VARIANT. Lazy."""
        if isinstance(self.read, CsvRead):
            read = self.read
            whole = read.multi_line or read.encoding != "UTF-8"
            return self._records(read, paths) if whole else self._lines(read, paths)
        if isinstance(self.read, JsonRead):
            return self._documents(self.read, paths)
        return self._elements(self.read, paths)

    def _reader(self) -> DataFrameReader:
        return self.spark.read.options(**WHOLE_FILES)

    def _lines(self, read: CsvRead, paths: Sequence[str]) -> DataFrame:
        """Each line is a row, so a row's number is that of its line."""
        separator = {} if read.line_separator is None else {"lineSep": read.line_separator}
        lines = self._reader().format("text").options(**separator).load(list(paths))
        raw = lines.select(*placed(lines), _text(F.col("value"), replace=read.replace_invalid))
        fields = ", ".join(f"{column(n)} STRING" for n in range(1, self.width + 1))
        options = {**read.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
        parsed = F.from_csv(RAW, f"{fields}, {_CORRUPT} STRING", options)
        rows = raw.withColumn(_TAKES, parsed)
        return self._cleaned(rows, read, lambda name: F.col(_TAKES).getField(name))

    def _records(self, read: CsvRead, paths: Sequence[str]) -> DataFrame:
        """A record may have several lines. Its number is that of the record, without blank lines."""
        fields = ", ".join(f"{column(n)} STRING" for n in range(1, self.width + 1))
        options = {**read.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT, "header": "false"}
        found = self._reader().options(**options).schema(f"{fields}, {_CORRUPT} STRING").csv(list(paths))
        kept = [F.col(column(n)) for n in range(1, self.width + 1)]
        rows = found.select(*placed(found), F.col(_CORRUPT), F.col(_CORRUPT).alias(RAW), *kept)
        return self._cleaned(rows, read, F.col)

    def _cleaned(self, rows: DataFrame, read: CsvRead, field: Callable[[str], Column]) -> DataFrame:
        names = [column(n) for n in range(1, self.width + 1)]

        def cleaned(value: Column) -> Column:
            whole = None if read.empty_field_as_null else F.coalesce(value, F.lit(""))
            return without_texts(value, read.null_if, whole)

        blank = F.coalesce(F.trim(F.col(RAW)) == "", F.lit(False)) if not read.multi_line else F.lit(False)
        problem = F.lit(None).cast("string")
        if self.exact and read.column_count_mismatch_is_error:
            said = f"Number of columns in file does not match that of the corresponding table: it must be {self.width}"
            problem = F.when(field(_CORRUPT).isNotNull() | (blank & F.lit(self.width > 1)), F.lit(said))
        if read.hides_bytes:
            problem = F.coalesce(self._replaced([field(name) for name in names]), problem)
        elif not read.replace_invalid:
            problem = F.coalesce(_not_text(F.col(RAW)), problem)
        return rows.select(
            *(FILE, BLOCK, ID, MODIFIED, RAW),
            (blank if read.skip_blank_lines else F.lit(False)).alias(SKIP),
            _may_be_open([field(name) for name in names], read).alias(OPEN),
            problem.alias(BAD),
            *(cleaned(field(name)).alias(name) for name in names),
        )

    def _replaced(self, texts: Sequence[Column]) -> Column:
        """The error of a row whose texts have the character that stands for bytes that are no text."""
        has_one = reduce(or_, (F.coalesce(text.contains(_REPLACEMENT), F.lit(False)) for text in texts))
        doubted = ~F.col(FILE).isin(*self.trusted) if self.trusted else F.lit(True)
        return F.when(has_one & doubted, F.lit(NOT_TEXT))

    def _documents(self, read: JsonRead, paths: Sequence[str]) -> DataFrame:
        whole = {"wholetext": str(read.multi_line).lower()}
        lines = self._reader().format("text").options(**whole).load(list(paths))
        raw = lines.select(*placed(lines), _text(F.col("value"), replace=read.replace_invalid))
        # A parser of one document ignores the text behind it. Within an array that is an error.
        found = F.try_parse_json(F.concat(F.lit("["), F.col(RAW), F.lit("]")))
        parsed = raw.withColumn(_TAKES, found).withColumn(VARIANT, F.try_variant_get(_TAKES, "$[0]", "variant"))
        is_one = F.col(VARIANT).isNotNull() & F.try_variant_get(_TAKES, "$[1]", "variant").isNull()
        blank = F.trim(F.col(RAW)) == ""
        problem = F.when(~is_one & ~blank, F.lit("Error parsing JSON: the text is not one document"))
        if not read.replace_invalid:
            problem = F.coalesce(_not_text(F.col(RAW)), problem)
        rows = parsed.select(
            *(FILE, BLOCK, ID, MODIFIED, RAW),
            blank.alias(SKIP),
            F.lit(False).alias(OPEN),
            problem.alias(BAD),
            F.col(VARIANT),
        )
        return _elements_of_arrays(rows) if read.strip_outer_array else rows

    def _elements(self, read: XmlRead, paths: Sequence[str]) -> DataFrame:
        found = self._reader().options(**read.options, singleVariantColumn=VARIANT).format("xml").load(list(paths))
        return found.select(
            *placed(found),
            F.lit(None).cast("string").alias(RAW),
            *(F.lit(False).alias(name) for name in (SKIP, OPEN)),
            F.when(F.col(VARIANT).isNull(), F.lit("Error parsing XML: the element is malformed")).alias(BAD),
            F.col(VARIANT),
        )


def _text(value: Column, *, replace: bool) -> Column:
    """The text without a byte order mark, which is only at the beginning of a file."""
    text = F.make_valid_utf8(value) if replace else value
    return F.when(text.startswith(_BYTE_ORDER_MARK), F.substring(text, 2, 1 << 30)).otherwise(text).alias(RAW)


def _not_text(raw: Column) -> Column:
    return F.when(~F.is_valid_utf8(raw), F.lit(NOT_TEXT))


def _may_be_open(fields: Sequence[Column], read: CsvRead) -> Column:
    """Whether a record may end within quotes: its last field has an end of a record. With another number of fields,
    any of them may, which only the record's text has.
    """
    if not read.multi_line:
        return F.lit(False)
    ends = (read.line_separator,) if read.line_separator else ("\n", "\r")
    places = F.coalesce(*reversed(fields)), F.rtrim(F.col(RAW), F.lit("".join(ends)))
    return reduce(or_, (F.coalesce(place.contains(end), F.lit(False)) for place in places for end in ends))


def without_texts(value: Column, null_if: Sequence[str], whole: Column | None = None) -> Column:
    """The value; NULL for one of these texts. `whole`: to be given in its place."""
    kept = value if whole is None else whole
    return F.when(~F.coalesce(value.isin(*null_if), F.lit(False)), kept) if null_if else kept


def cleaned(value: Column, read: TextRead) -> Column:
    """A member of a document by TRIM_SPACE and NULL_IF of its format, as a variant."""
    if not isinstance(read, JsonRead):
        return value
    text = F.try_variant_get(value, "$", "string")
    if read.trim:
        is_text = F.coalesce(F.schema_of_variant(value) == "STRING", F.lit(False))
        text = F.when(is_text, F.trim(text)).otherwise(text)
        value = F.when(is_text, text.cast("variant")).otherwise(value)
    return without_texts(text, read.null_if, value)


def _elements_of_arrays(rows: DataFrame) -> DataFrame:
    """A row for each element of a document that is an array, with its place in the array as ID. A document that cannot
    be read keeps its row.
    """
    arrays = F.when(F.col(BAD).isNull(), F.try_variant_get(VARIANT, "$", "array<variant>"))
    elements = F.posexplode(F.coalesce(arrays, F.array(F.col(VARIANT)))).alias("__pos", "__element")
    exploded = rows.select(FILE, BLOCK, MODIFIED, RAW, SKIP, OPEN, BAD, elements)
    return exploded.select(
        FILE,
        BLOCK,
        F.col("__pos").cast("bigint").alias(ID),
        MODIFIED,
        F.when(F.col(BAD).isNotNull(), F.col(RAW)).alias(RAW),
        SKIP,
        OPEN,
        BAD,
        F.col("__element").alias(VARIANT),
    )
