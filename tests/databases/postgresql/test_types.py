"""Types by OID and modifier, without a server; `test_catalog` compares with a real one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.errors import InvalidArgument
from tidemark.replication.model.replication import TypeKind, UnifiedType
from tidemark.replication.sources.postgresql.types import decimal_of, numeric_choice, unified_type

STRING = UnifiedType(TypeKind.STRING)


@given(st.integers(1, 1000), st.integers(-1000, 1000))
def test_a_modifier_gives_its_precision_and_scale_back(precision: int, scale: int) -> None:
    modifier = (precision << 16 | scale & 0x7FF) + 4  # as the server packs them
    assert unified_type(1700, modifier) == decimal_of(precision, scale)


@given(st.integers(1, 1000), st.integers(-1000, 1000))
def test_a_decimal_holds_every_value_of_its_numeric_or_it_is_a_string(precision: int, scale: int) -> None:
    found = decimal_of(precision, scale)
    if found == STRING:
        assert max(precision, scale, precision - scale) > 38
        return
    assert found.precision is not None
    assert found.scale is not None
    assert found.precision <= 38
    assert found.scale >= scale  # digits behind the point
    assert found.precision - found.scale >= precision - scale  # digits before it


@given(st.integers(0, 1 << 32), st.integers(-1, 1 << 31))
def test_no_type_is_refused(oid: int, modifier: int) -> None:
    assert unified_type(oid, modifier).kind in TypeKind
    assert unified_type(oid, modifier, element=STRING) == UnifiedType(TypeKind.ARRAY, item=STRING)


def test_items_of_built_in_arrays() -> None:
    assert unified_type(1007, -1) == UnifiedType(TypeKind.ARRAY, item=UnifiedType(TypeKind.INTEGER))
    assert unified_type(1231, -1, numeric_as="decimal(20,4)").item == UnifiedType(TypeKind.DECIMAL, 20, 4)


@pytest.mark.parametrize(
    "choice", ["decimal", "decimal(0,0)", "decimal(39,2)", "decimal(5,6)", "double", "decimal(5)", ""]
)
def test_a_choice_for_numeric_that_delta_cannot_hold_is_refused(choice: str) -> None:
    with pytest.raises(InvalidArgument, match="numeric_as"):
        numeric_choice(choice)


def test_a_choice_for_numeric_is_taken() -> None:
    assert numeric_choice(None) == numeric_choice("String") == STRING
    assert numeric_choice(" DECIMAL( 38 , 9 ) ") == UnifiedType(TypeKind.DECIMAL, 38, 9)
    assert unified_type(1700, -1, numeric_as="decimal(38,9)") == UnifiedType(TypeKind.DECIMAL, 38, 9)
    assert unified_type(1700, (10 << 16 | 2) + 4, numeric_as="decimal(38,9)") == UnifiedType(TypeKind.DECIMAL, 10, 2)
