"""Documents that announce files: known forms, files elsewhere, and texts of any kind."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.pipes.planning.channel_addresses import is_sqs, queue_name_of, region_of
from tidemark.pipes.planning.notifications import announced_files

S3 = "s3://bucket/in"
AZURE = "abfss://box@shop.dfs.core.windows.net/in"


def s3_event(*keys: str, bucket: str = "bucket", event: str = "ObjectCreated:Put") -> dict[str, Any]:
    return {"Records": [{"eventName": event, "s3": {"bucket": {"name": bucket}, "object": {"key": k}}} for k in keys]}


def event_bridge(key: str, kind: str = "Object Created") -> dict[str, Any]:
    return {
        "detail-type": kind,
        "source": "aws.s3",
        "detail": {"bucket": {"name": "bucket"}, "object": {"key": key}},
    }


def azure_event(blob: str, kind: str = "Microsoft.Storage.BlobCreated", field: str = "eventType") -> dict[str, Any]:
    subject = f"/blobServices/default/containers/box/blobs/{blob}"
    return {field: kind, "subject": subject, "data": {"url": f"https://shop.blob.core.windows.net/box/{blob}"}}


def files_of(document: Any, location: str = S3, prefix: str = "") -> tuple[str, ...]:
    found = announced_files(json.dumps(document), location, prefix)
    assert found.problem is None
    return found.files


PUBSUB = {"bucketId": "bucket", "objectId": "in/a b.csv", "eventType": "OBJECT_FINALIZE"}


@pytest.mark.parametrize(
    ("document", "location"),
    [
        (s3_event("in/a+b.csv"), S3),
        (s3_event("in/a%20b.csv", event="s3:ObjectCreated:CompleteMultipartUpload"), S3),
        ({"Type": "Notification", "Message": json.dumps(s3_event("in/a+b.csv"))}, S3),
        (event_bridge("in/a b.csv"), S3),
        ({"kind": "storage#object", "bucket": "bucket", "name": "in/a b.csv"}, "gs://bucket/in"),
        (
            {"type": "google.cloud.storage.object.v1.finalized", "data": {"bucket": "bucket", "name": "in/a b.csv"}},
            "gs://bucket/in",
        ),
        ({"message": {"attributes": PUBSUB}}, "gs://bucket/in"),
        ({"attributes": PUBSUB}, "gcs://bucket/in"),
        (azure_event("in/a b.csv"), AZURE),
        ([azure_event("in/a b.csv", field="type")], "abfs://box/in"),
        ({"files": ["a b.csv"]}, S3),
        ({"files": ["/a b.csv"]}, S3),
        ({"files": ["s3a://bucket/in/a b.csv"]}, S3),
        ({"files": ["file:///data/in/a b.csv"]}, "file:///data/in"),
        ({"files": ["/data/in/a b.csv"]}, "file:///data/in"),
    ],
)
def test_each_form_names_its_file(document: Any, location: str) -> None:
    assert files_of(document, location) == ("a b.csv",)


@pytest.mark.parametrize(
    "document",
    [
        {"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "bucket"},
        s3_event("in/a.csv", event="ObjectRemoved:Delete"),
        s3_event("in/a.csv", bucket="another"),
        s3_event("inside/a.csv"),
        s3_event("in/"),
        s3_event("in/x//a.csv"),
        s3_event("in/../secret.csv"),
        event_bridge("in/a.csv", kind="Object Deleted"),
        {"type": "google.cloud.storage.object.v1.deleted", "data": {}},
        {"attributes": {**PUBSUB, "eventType": "OBJECT_DELETE"}},
        azure_event("in/a.csv", kind="Microsoft.Storage.BlobDeleted"),
        s3_event(f"in/{'x' * 1100}.csv"),
        {"files": ["", "../a.csv", "a\0b", "\ud800.csv", "gs://bucket/in/a.csv"]},
    ],
)
def test_other_events_and_files_elsewhere_are_left_out_without_a_problem(document: Any) -> None:
    found = announced_files(json.dumps(document), S3)
    assert (found.files, found.problem) == ((), None)
    assert found.others >= 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not JSON"),
        ('{"files": ["a.c', "not JSON"),
        ("null", "not an object: null"),
        ('"text"', "not an object"),
        ("{}", "no known form"),
        ('{"hello": "world"}', "its fields are hello"),
        ('{"Type": "SubscriptionConfirmation", "Token": "x"}', "no known form"),
        ('{"files": "a.csv"}', '"files" must be a list'),
        ('{"files": [7]}', '"files" must be a list of names, not of 7'),
        ('{"Records": [{"eventName": "ObjectCreated:Put"}]}', "no text at s3.object.key"),
        ('{"Records": [null]}', "no text at eventName"),
        ('{"detail-type": "Object Created", "source": "aws.s3"}', "no text at bucket.name"),
        ('{"Event": [], "Type": {}, "kind": []}', "no known form"),
        ('{"Records": [{"eventName": "ObjectCreated:Put", "s3": {"object": {"key": "%ff"}}}]}', "not UTF-8"),
        ('{"eventType": "Microsoft.Storage.BlobCreated", "subject": "x", "data": {"url": "u"}}', "names no blob"),
        ("[" * 100_000, "not JSON"),
        ("[[[[[{}]]]]]", "nested too deeply"),
        ("1" * 10_000, "not JSON"),
    ],
)
def test_a_document_that_is_not_understood_has_a_problem(text: str, problem: str) -> None:
    found = announced_files(text, S3)
    assert found.files == ()
    assert problem in (found.problem or "")


def test_a_bad_event_does_not_hide_the_good_ones_beside_it() -> None:
    found = announced_files(json.dumps({"files": ["a.csv", None, "b.csv"]}), S3)
    assert found.files == ("a.csv", "b.csv")
    assert found.problem is not None


def test_names_begin_behind_the_prefix_and_each_counts_once() -> None:
    assert files_of(s3_event("in/2024/a.csv", "in/2025/a.csv", "in/2024/a.csv"), prefix="2024/") == ("a.csv",)
    assert files_of(s3_event("in/2024.csv", "in/2024/a.csv"), prefix="2024") == (".csv", "/a.csv")
    assert files_of({"files": ["a.csv"]}, prefix="2024/") == ("a.csv",)
    assert files_of(s3_event("a.csv"), location="s3://bucket") == ("a.csv",)


def test_azure_tells_accounts_apart_where_the_location_has_one() -> None:
    event = azure_event("in/a.csv")
    assert files_of(event, "abfss://box@other.dfs.core.windows.net/in") == ()
    assert files_of(event, "az://box/in") == ("a.csv",)


part = st.text(min_size=1, max_size=8).filter(lambda one: one not in (".", "..") and not {"/", "\0"} & set(one))
names = st.lists(part, min_size=1, max_size=3).map("/".join)


@given(names)
def test_any_name_comes_through(name: str) -> None:
    assert files_of(s3_event(quote_plus(f"in/{name}", safe="/"))) == (name,)
    assert files_of(event_bridge(f"in/{name}")) == (name,)
    assert files_of(azure_event(f"in/{name}"), AZURE) == (name,)
    assert files_of({"files": [f"s3://bucket/in/{name}"]}) == (name,)


FIELDS = [
    *("Records", "s3", "bucket", "name", "object", "key", "eventName", "Type", "Message", "Event", "files", "detail"),
    *("detail-type", "source", "type", "kind", "data", "message", "attributes", "objectId", "eventType", "subject"),
]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS) | st.text(max_size=3),
            inner
            | st.sampled_from(["Notification", "aws.s3", "Object Created", "ObjectCreated:Put", "storage#object"])
            | st.sampled_from(["Microsoft.Storage.BlobCreated", "google.cloud.storage.object.v1.finalized"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.text() | json_values.map(json.dumps))
def test_any_text_is_answered(text: str) -> None:
    found = announced_files(text, S3, "p")
    for name in found.files:
        assert name.encode() is not None
        assert ".." not in f"p{name}".split("/")


@pytest.mark.parametrize(
    ("address", "region"),
    [
        ("https://sqs.eu-west-1.amazonaws.com/123456789012/q", "eu-west-1"),
        ("https://eu-west-1.queue.amazonaws.com/123456789012/q", "eu-west-1"),
        ("https://sqs.cn-north-1.amazonaws.com.cn/123456789012/q", "cn-north-1"),
        ("arn:aws:sqs:us-east-2:123456789012:q.fifo", "us-east-2"),
        ("http://127.0.0.1:4566/000000000000/q", None),
    ],
)
def test_queues_are_known_by_url_and_arn(address: str, region: str | None) -> None:
    assert is_sqs(address)
    assert region_of(address) == region


@pytest.mark.parametrize("address", ["/data/notes", "s3://bucket/notes", "arn:aws:sns:us-east-1:123456789012:topic"])
def test_other_addresses_are_no_queues(address: str) -> None:
    assert not is_sqs(address)


def test_an_arn_has_the_account_and_the_name() -> None:
    assert queue_name_of("arn:aws-cn:sqs:cn-north-1:123456789012:q") == ("123456789012", "q")
