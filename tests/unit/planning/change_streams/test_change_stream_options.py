"""Options of a change stream: which values pass, what a change keeps, and what the catalog shows of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tidemark.change_streams.model.change_streams import ChangeStreamOptions, ValueCaptureType
from tidemark.change_streams.planning.options import changed_options, parse_options, shown_options
from tidemark.errors import ChangeStreamRefused


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("1d", timedelta(days=1)),
        ("24h", timedelta(days=1)),
        ("36h", timedelta(hours=36)),
        ("1440m", timedelta(days=1)),
        ("86400s", timedelta(days=1)),
        ("30d", timedelta(days=30)),
        (timedelta(days=3), timedelta(days=3)),
        (None, timedelta(days=1)),
    ],
)
def test_retention_is_from_one_to_thirty_days_in_any_unit(given: Any, wanted: timedelta) -> None:
    assert parse_options("s", {"retention_period": given}).retention == wanted


@pytest.mark.parametrize(
    "given",
    ["", "7", "d", "7 d", "7D", "-1d", "1.5d", "1w", "23h", "31d", "86399s", "721h", 7, True, timedelta(days=31)],
)
def test_any_other_retention_is_refused(given: Any) -> None:
    with pytest.raises(ChangeStreamRefused, match=r"retention_period=.*from 1 to 30 days"):
        parse_options("s", {"retention_period": given})


@pytest.mark.parametrize("kind", list(ValueCaptureType))
def test_each_value_capture_type_is_known_by_its_name(kind: ValueCaptureType) -> None:
    assert parse_options("s", {"value_capture_type": kind.value}).value_capture_type is kind


@pytest.mark.parametrize("given", ["new_row", "OLD_VALUES", "", 1, True])
def test_any_other_value_capture_type_is_refused(given: Any) -> None:
    with pytest.raises(ChangeStreamRefused, match=r"value_capture_type=.*NEW_ROW_AND_OLD_VALUES"):
        parse_options("s", {"value_capture_type": given})


FLAGS = ["exclude_ttl_deletes", "exclude_insert", "exclude_update", "exclude_delete", "allow_txn_exclusion"]


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_is_true_false_or_null(flag: str) -> None:
    assert getattr(parse_options("s", {flag: True}), flag) is True
    assert getattr(parse_options("s", {flag: False}), flag) is False
    assert parse_options("s", {flag: None}) == ChangeStreamOptions()
    for wrong in ("true", 1, 0, ""):
        with pytest.raises(ChangeStreamRefused, match=f"{flag}=.*true, false or NULL"):
            parse_options("s", {flag: wrong})


def test_an_unknown_option_and_one_given_twice_are_refused_with_the_streams_name() -> None:
    with pytest.raises(
        ChangeStreamRefused, match="Change stream s: it has no option 'retention'; there are retention_p"
    ):
        parse_options("s", {"retention": "7d"})
    with pytest.raises(ChangeStreamRefused, match="option exclude_insert is given twice"):
        parse_options("s", {"exclude_insert": True, "EXCLUDE_INSERT": False})


def test_a_change_keeps_what_it_does_not_name_and_null_puts_back_the_default() -> None:
    first = parse_options("s", {"exclude_insert": True, "RETENTION_PERIOD": "7d", "value_capture_type": "NEW_ROW"})
    then = changed_options("s", first, {"value_capture_type": None, "exclude_delete": True})

    assert then.value_capture_type is ValueCaptureType.OLD_AND_NEW_VALUES
    assert (then.exclude_insert, then.exclude_delete, then.retention) == (True, True, timedelta(days=7))
    assert then.given == ("retention_period", "exclude_insert", "exclude_delete")


def test_the_catalog_shows_only_what_was_set_as_text() -> None:
    assert shown_options(parse_options("s", {})) == {}
    options = parse_options("s", {"retention_period": "36h", "exclude_update": False, "value_capture_type": "NEW_ROW"})
    assert shown_options(options) == {
        "retention_period": "36h",
        "value_capture_type": "NEW_ROW",
        "exclude_update": "false",
    }
    assert shown_options(parse_options("s", {"retention_period": "48h"})) == {"retention_period": "2d"}
