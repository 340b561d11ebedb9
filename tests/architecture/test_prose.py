"""The prose of pages, docstrings and texts keeps the mechanical rules: short sentences, known words, the subject first.

Docstrings and texts are those of the product, of the DAGs in `dags`, and of the examples that pages of operators quote.

Texts are what the product shows a person: errors, lines of the log, help of commands, and the page.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.prose import FIRST_WORDS, LONGEST, broken_rules, sentences_of_docstrings, sentences_of_page
from tests.architecture.texts import sentences_of_script, sentences_of_texts

ROOT = Path(__file__).parents[2]
PROSE = ("*.md", "provider/CHANGELOG.md", "provider/docs/**/*.md")
"""The pages that are checked, as globs from the top of the repository."""

ALLOWED = {
    "Recluster the table now, also if it is suspended, within `max_size` bytes.": "client docstrings are reworded",
}
"""Sentences that may break a rule, word for word, and the reason."""

PAGES = sorted({page for glob in PROSE for page in ROOT.glob(glob)})
PRODUCT = ROOT / "provider" / "tidemark"
EXAMPLES = (ROOT / "dags", ROOT / "tests" / "airflow" / "examples")
"""DAGs that a user reads and copies. Pages of operators quote the second folder."""

MODULES = sorted(module for folder in (PRODUCT, *EXAMPLES) for module in folder.rglob("*.py"))
SCRIPTS = sorted((PRODUCT / "plugins" / "monitor" / "page").glob("*.js"))
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


def rules_broken_in(text: str) -> list[str]:
    return [found.rule for sentence in sentences_of_page(text) for found in broken_rules(sentence)]


@every_page
def test_the_sentences_of_a_page_keep_the_rules(page: Path) -> None:
    sentences = [one for one in sentences_of_page(page.read_text(encoding="utf-8")) if one.text not in ALLOWED]
    found = [finding for sentence in sentences for finding in broken_rules(sentence)]
    name = page.relative_to(ROOT).as_posix()
    report = "\n".join(finding.report(name) for finding in found)
    assert not found, f"rewrite these sentences, or allow one in {Path(__file__).name} with its reason:\n{report}"


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.relative_to(ROOT).as_posix())
def test_the_docstrings_and_texts_of_a_module_keep_the_rules(module: Path) -> None:
    source = module.read_text(encoding="utf-8")
    sentences = [*sentences_of_docstrings(source), *sentences_of_texts(source)]
    found = [finding for one in sentences if one.text not in ALLOWED for finding in broken_rules(one)]
    assert not found, "\n".join(finding.report(module.relative_to(ROOT).as_posix()) for finding in found)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_the_texts_of_the_page_keep_the_rules(script: Path) -> None:
    sentences = sentences_of_script(script.read_text(encoding="utf-8"))
    found = [finding for sentence in sentences for finding in broken_rules(sentence)]
    assert not found, "\n".join(finding.report(script.name) for finding in found)


def test_every_glob_finds_pages() -> None:
    assert [glob for glob in PROSE if not [*ROOT.glob(glob)]] == []
    assert [folder for folder in EXAMPLES if not [*folder.rglob("*.py")]] == []
    assert SCRIPTS


def test_every_sentence_that_is_allowed_breaks_a_rule_and_has_a_reason() -> None:
    assert [text for text in ALLOWED if not rules_broken_in(text)] == []
    assert all(reason.strip() for reason in ALLOWED.values())


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("What it reads is stored.", ["begins with “what”"]),
        ("A row is written. **Whoever** waits gets it.", ["begins with “whoever”", "the word “Whoever”"]),
        ("One that waits is skipped.", ["begins with “one that”"]),
        ("- Each of them moves.", ["begins with “each of”"]),
        ("The stream stands at version 3.", ["the word “stands”"]),
        ("The run goes\non.", ["the word “goes on”"]),
        ("The table is made anew.", ["the word “anew”"]),
        ("The file is there.", ["the word “is there”"]),
        ("Events are written down.", ["the word “written down”"]),
        ("It runs, also if it is late.", ["the word “also if”"]),
        ("Show at most so many.", ["the word “so many”"]),
        ("A kill leaves the pipe as it was.", ["the word “leaves the pipe as it was”"]),
        ("word " * LONGEST + "more.", [f"{LONGEST + 1} words"]),
    ],
)
def test_each_rule_finds_what_breaks_it(text: str, rules: list[str]) -> None:
    assert rules_broken_in(text) == rules


@pytest.mark.parametrize(
    "text",
    [
        "## What it returns",
        "What is an offset?",
        "| what | why |\n| --- | --- |\n| a name | a reason |",
        "Text in `code that stands there anew` is free.",
        "```text\nWhat lies there goes on.\n```",
        "    what lies there    # in a block of commands",
        "<!-- client: lake\nlake.close, by make client-page -->\n\nWhat lies there.\n\n<!-- end of client -->",
        "<!-- arguments, by make operator-pages -->\n| a |\n| --- |\n| what lies there |\n\n<!-- end of arguments -->",
        "The letter R stands for *rule*.",
        "The [link](a-page-whose-name-lies-there.md) counts as its text.",
        f"{'word ' * (LONGEST - 1)}`a span of code`.",
        f"| a |\n| --- |\n| {'word ' * LONGEST}; {'word ' * LONGEST} |",
        "Delta 4.4 reads it. Spark 4.2 does, too.",
        "The window is the table as it was at the start. It has so many rows that all are read.",
    ],
)
def test_what_no_rule_forbids_is_free(text: str) -> None:
    assert rules_broken_in(text) == []


def test_a_finding_names_page_line_sentence_rule_and_better_word() -> None:
    (sentence,) = [
        one
        for one in sentences_of_page("# Title\n\nA first\nsentence. Who reads\nit?\n\nWho reads it.")
        if one.line == 7
    ]
    (found,) = broken_rules(sentence)
    assert found.report("page.md") == f"page.md:7: begins with “who”; better: {FIRST_WORDS['who']}\n    Who reads it."


def test_a_sentence_within_a_block_has_the_line_on_which_it_begins() -> None:
    lines = [
        one.line for one in sentences_of_page("One sentence\nof two lines. Another\none.\n\n| a |\n| --- |\n| cell |")
    ]
    assert lines == [1, 2, 5, 7]


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ('raise Refused("a writer stands inside already")', ["a writer stands inside already"]),
        ('problem = f"the table {name} lies " + "there now"', ["the table `field` lies there now"]),
        ("f\"{say('what it said stands here')} of all rows\"", ["`field` of all rows", "what it said stands here"]),
        ('log.info("Stream %s is read. %d rows go on.", a, b)', ["Stream `field` is read.", "`field` rows go on."]),
        ('f"it failed: {problem} Try the task again."', ["it failed: `field`.", "Try the task again."]),
    ],
)
def test_strings_that_a_person_reads_are_texts(source: str, texts: list[str]) -> None:
    assert [one.text for one in sentences_of_texts(source)] == texts


@pytest.mark.parametrize(
    "source",
    [
        '"three words alone"',
        '"""A docstring that lies there."""',
        '"SELECT id FROM orders WHERE id in (SELECT 1)"',
        '"CREATE SCHEMA shop; CREATE TABLE shop.orders (id bigint, note text)"',
        '"INSERT INTO shop.orders VALUES (1, in the note)"',
        '"name STRING, version BIGINT, at TIMESTAMP"',
        '"all and or in is not where".split()',
        'r"could not (?:connect|send)|refused"',
    ],
)
def test_other_strings_are_no_texts(source: str) -> None:
    assert [one.text for one in sentences_of_texts(source)] == []


def test_a_script_has_texts_in_strings_and_templates() -> None:
    script = 'h("p", {}, "None of them stands here."); // what lies there\nconst text = `${n} of ${all} rows go on`;'
    found = [(one.line, one.text) for one in sentences_of_script(script)]
    assert found == [(1, "None of them stands here."), (2, "`field` of `field` rows go on")]
