"""A bad URL is told at once, in words that help, without a part of its password."""

from __future__ import annotations

import sys

import pytest

from tidemark.control.store import ControlStore
from tidemark.control.urls import parse_url, shown
from tidemark.errors import StoreUrlInvalid


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("not a url s3cret", "it is not a URL"),
        ("", "it is not a URL"),
        ("postgresql://ann:s3cret@host:port/db", "port is not a number"),
        ("postgresql://ann:s3cret@host:99999999/db", "port"),
        ("postgresql+nothing://ann:s3cret@host/db", "'postgresql\\+nothing' is not supported"),
        ("postgresql+psycopg2://ann:s3cret@host/db", "postgresql\\+psycopg://"),
        ("mysql://ann:s3cret@host/db", "'mysql' is not supported"),
        ("postgresql://ann:half@s3cret@host/db", "percent-encode @"),
        ("postgresql://ann:half@s3:cret@host/db", "percent-encode @"),
        ("postgresql://ann:half@s3/cret@host/db", "percent-encode @"),
        ("postgresql://ann:s3cret@host", "names no database"),
        ("sqlite://", "a database in memory"),
        ("sqlite:///:memory:", "a database in memory"),
    ],
)
def test_what_cannot_be_a_store_is_refused_in_words(url: str, said: str) -> None:
    with pytest.raises(StoreUrlInvalid, match=said) as refused:
        ControlStore(url)
    shown_to_all = f"{refused.value}{refused.value.facts}{refused.value.__cause__}"
    assert not any(part in shown_to_all for part in ("s3cret", "cret@", "half"))


def test_a_password_of_its_own_needs_no_encoding() -> None:
    url = parse_url("postgresql://ann@host/db", password="p@ss:w/rd?#%")
    assert url.password == "p@ss:w/rd?#%"
    assert parse_url(url.render_as_string(hide_password=False)).password == "p@ss:w/rd?#%"


def test_the_driver_is_psycopg_whatever_sqlalchemys_default_is() -> None:
    assert parse_url("postgresql://host/db").drivername == "postgresql+psycopg"


def test_no_secret_of_a_url_is_shown() -> None:
    url = parse_url("postgresql://ann:s3cret@host/db?sslpassword=s3cret&password=s3cret&sslmode=require")
    assert "s3cret" not in shown(url)
    assert "sslmode=require" in shown(url)
    assert "s3cret" not in repr(ControlStore(url.render_as_string(hide_password=False)))


def test_a_driver_that_is_not_installed_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreUrlInvalid, match=r"pip install 'airflow-provider-tidemark\[postgres\]'") as refused:
        ControlStore("postgresql://ann:s3cret@host/db")
    assert "s3cret" not in str(refused.value)
