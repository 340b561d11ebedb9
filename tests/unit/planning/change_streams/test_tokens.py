"""Tokens say what they were made of, and nothing else passes for one."""

from __future__ import annotations

import base64
import struct
import zlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.change_streams.model.change_streams import BUCKETS
from tidemark.change_streams.planning.tokens import TokenParts, first_partitions, make_token, parse_token
from tidemark.errors import InvalidArgument, PartitionTokenInvalid

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
UID = "6a0f4a1e-8f0b-4a5d-9a9c-0d5b4f7e2c11"

RANGES = st.tuples(st.integers(0, BUCKETS - 1), st.integers(1, BUCKETS)).filter(lambda pair: pair[0] < pair[1])
BATCHES = st.integers(0, 2**63)


@given(st.text(max_size=40), RANGES, BATCHES)
def test_a_token_says_what_it_was_made_of(uid: str, lo_hi: tuple[int, int], batch: int) -> None:
    token = make_token(uid, *lo_hi, batch)
    assert parse_token(token, stream_uid=uid) == TokenParts(uid, *lo_hi, batch)
    assert make_token(uid, *lo_hi, batch) == token
    assert set(token) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


@given(RANGES, BATCHES, st.data())
def test_a_token_with_one_character_changed_is_refused(lo_hi: tuple[int, int], batch: int, data: st.DataObject) -> None:
    token = make_token(UID, *lo_hi, batch)
    place = data.draw(st.integers(0, len(token) - 1))
    letter = data.draw(st.characters(codec="utf-8").filter(lambda letter: letter != token[place]))
    with pytest.raises(PartitionTokenInvalid, match="damaged"):
        parse_token(token[:place] + letter + token[place + 1 :])


@given(RANGES, BATCHES, st.integers(1, 20))
def test_a_token_that_was_cut_or_grew_is_refused(lo_hi: tuple[int, int], batch: int, count: int) -> None:
    token = make_token(UID, *lo_hi, batch)
    for damaged in (token[:-count], token[count:], token + "A" * count, token + "=", f" {token}", f"{token}\n"):
        with pytest.raises(PartitionTokenInvalid, match="damaged"):
            parse_token(damaged)


@given(st.one_of(st.text(), st.binary().map(lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="))))
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(PartitionTokenInvalid, match="partition_token is invalid"):
        parse_token(text)


@given(st.uuids(), RANGES, BATCHES)
def test_a_token_of_another_stream_is_refused(other: object, lo_hi: tuple[int, int], batch: int) -> None:
    token = make_token(str(other), *lo_hi, batch)
    with pytest.raises(PartitionTokenInvalid, match="of another change stream"):
        parse_token(token, stream_uid=UID)


@pytest.mark.parametrize("body", [struct.pack(">BHHQ", 2, 0, 9, 0) + b"x", struct.pack(">BHHQ", 1, 9, 3, 0) + b"x"])
def test_a_sound_text_of_another_version_or_without_a_range_is_refused(body: bytes) -> None:
    text = base64.urlsafe_b64encode(body + struct.pack(">I", zlib.crc32(body))).decode().rstrip("=")
    with pytest.raises(PartitionTokenInvalid, match="damaged"):
        parse_token(text)


@pytest.mark.parametrize(("lo", "hi"), [(-1, 5), (5, 5), (6, 5), (0, BUCKETS + 1)])
def test_no_token_is_made_of_what_is_no_range(lo: int, hi: int) -> None:
    with pytest.raises(InvalidArgument, match="must be a range"):
        make_token(UID, lo, hi, 0)


@given(st.integers(1, 3_000))
def test_the_first_partitions_tile_the_key_space_evenly(count: int) -> None:
    found = first_partitions(UID, CREATED, count)
    assert [found[0].lo, *(partition.hi for partition in found)] == [*(p.lo for p in found), BUCKETS]
    sizes = {partition.hi - partition.lo for partition in found}
    assert max(sizes) - min(sizes) <= 1
    assert len({partition.token for partition in found}) == count
    assert {(p.parents, p.start, p.end, p.batch) for p in found} == {((), CREATED, None, 0)}


@pytest.mark.parametrize("count", [0, -1, BUCKETS + 1])
def test_there_is_one_first_partition_at_least_and_one_for_each_bucket_at_most(count: int) -> None:
    with pytest.raises(InvalidArgument, match="initial_partitions"):
        first_partitions(UID, CREATED, count)
