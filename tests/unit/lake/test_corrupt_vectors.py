"""A damaged inline deletion vector is said by name, or gives as many rows as its entry says."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from tidemark.errors import CorruptLog
from tidemark.lake import deletion_vectors
from tidemark.lake.storage import Storage
from tidemark.model.table_log import DeletionVector


@given(
    text=st.text(
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#é\0", max_size=80
    )
)
@settings(max_examples=200, deadline=None)
def test_any_text_for_an_inline_deletion_vector(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    storage = Storage(str(tmp_path_factory.getbasetemp()))
    for kind in "iu":
        vector = DeletionVector(kind, text, max(len(text) * 4 // 5, 1), 1)
        with pytest.raises((CorruptLog, FileNotFoundError)):
            deletion_vectors.load(vector, storage.uri, storage)


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_a_byte_flipped_in_an_inline_deletion_vector(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """It has no checksum: what is left is the magic number, the form of a bitmap, and the number of rows."""
    storage = Storage(str(tmp_path_factory.getbasetemp()))
    rows = BitMap64(data.draw(st.sets(st.integers(0, 2**34), min_size=1, max_size=40)))
    vector = deletion_vectors.inline(rows)
    text = list(vector.path_or_inline)
    at = data.draw(st.integers(0, len(text) - 1))
    text[at] = data.draw(st.sampled_from("0aZ.#"))
    damaged = DeletionVector("i", "".join(text), vector.size_in_bytes, vector.cardinality)
    with suppress(CorruptLog):
        assert len(deletion_vectors.load(damaged, storage.uri, storage)) == len(rows)
