"""Secrets of a connection that are no texts, or in no form that can be read: Airflow masks them all the same."""

from __future__ import annotations

import json

from airflow.sdk.log import redact  # type: ignore[attr-defined]

from tidemark.hooks._secrets import mask_connection


def test_a_secret_that_is_a_number_is_masked_as_its_text() -> None:
    options = {"secret": 87654321987, "client_kwargs": {"password": 1234567.25, "more": [5550123456]}, "port": 99999999}
    for given in (options, json.dumps(options)):
        mask_connection({"storage_options": given}, password=None, store_url=None)
    shown = str(redact("87654321987 1234567.25 99999999"))
    assert "99999999" in shown
    assert "87654321987" not in shown
    assert "1234567.25" not in shown


def test_options_that_are_nested_too_deeply_are_masked_as_a_whole() -> None:
    mask_connection({"storage_options": "[" * 20_000}, password=None, store_url=None)
    assert "[[[[" not in str(redact("[" * 20_000))
