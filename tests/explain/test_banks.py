"""Remedies against bank conflicts, tried on access patterns whose answers are known by hand."""

from __future__ import annotations

import pytest

from grader.explain.accesses import SharedAccess, side_by_side
from grader.explain.banks import Conflict, worst
from tests.support.bench import engine


def access(*words: int, width: int = 4, **changes: object) -> SharedAccess:
    """A load in the main loop whose lanes read these words."""
    given: dict[str, object] = {
        **{"opcode": "LDS", "file": "sgemm.cu", "line": 10, "row": 1, "in_loop": True},
        **{"requests": 1.0, "wavefronts": 8.0, "ideal": 1.0, "width": width, "array": 0},
        "lanes": words,
    }
    return SharedAccess(**(given | changes))  # type: ignore[arg-type]


def blamed(*accesses: SharedAccess, unroll: int = 1) -> Conflict:
    found = worst(accesses, unroll, engine())
    assert found is not None
    return found


def advised(*accesses: SharedAccess, unroll: int = 1) -> str:
    remedy = blamed(*accesses, unroll=unroll).remedy
    return str(remedy.words) if remedy else ""


def test_a_column_of_a_square_tile_is_padded_by_one() -> None:
    column = access(*(32 * lane for lane in range(32)), wavefronts=32.0)

    assert advised(column) == "pad each row of the tile by 1"
    found = blamed(column)
    assert found.remedy is not None and found.remedy.kept == 0
    assert found.lanes == (0, 1) and found.apart == 32


def test_rows_that_are_read_as_float4_are_padded_by_four() -> None:
    """By one, the float4 of the second access would not be aligned."""
    scattered = access(*(64 * (lane % 8) for lane in range(32)), opcode="STS")
    vectors = access(*(lane % 8 * 4 for lane in range(32)), width=16, wavefronts=4.0, ideal=4.0)

    words = advised(scattered, vectors, unroll=4)
    assert words == "pad each row of the tile by 4, which keeps float4 aligned"


def test_a_remedy_must_help_for_the_rows_that_there_may_be() -> None:
    """A thread reads 8 rows of 9 words: no padding helps, neighbouring threads on neighbouring rows
    do."""
    rows = [access(*(72 * (lane % 16) + 9 * i for lane in range(32))) for i in range(8)]

    assert advised(*rows) == "let neighbouring threads take neighbouring rows of the tile"


def test_padding_is_not_advised_within_a_row() -> None:
    """Eight neighbouring values for each of 16 threads, read as two float4: the usual 8×8 tile."""
    places = [lane % 16 * 8 for lane in range(32)]
    first = access(*places, width=16, wavefronts=4.0, ideal=2.0)
    second = access(*(place + 4 for place in places), width=16, wavefronts=4.0, ideal=2.0)

    words = advised(first, second)
    assert words.startswith("padding rows does not help")
    assert "neighbouring groups of 4 values" in words and "64 values apart" in words


def test_nothing_is_advised_that_does_not_help() -> None:
    """28 words apart, 4 more bring all lanes into one bank; float4 forbids one more."""
    column = access(*(28 * lane for lane in range(32)))
    vectors = access(*(4 * lane for lane in range(32)), width=16, wavefronts=4.0, ideal=4.0)

    assert "by 1" in advised(access(*(16 * lane for lane in range(32)), wavefronts=16.0))
    assert blamed(column, vectors).remedy is None
    scalars = access(*(lane % 4 * 127 + lane // 4 * 8 for lane in range(32)))
    assert "float4" not in advised(scalars)  # there is none that 4 would keep aligned


def test_the_line_with_the_most_extra_wavefronts_is_blamed() -> None:
    free = access(*range(32), line=5, requests=1e6, wavefronts=1.0)
    rare = access(*(32 * lane for lane in range(32)), line=6, wavefronts=32.0)
    often = access(*(2 * lane for lane in range(32)), line=7, wavefronts=2.0, requests=100.0)
    found = blamed(free, rare, often)

    assert (found.at.line, found.at.file) == (7, "sgemm.cu")
    assert found.share == pytest.approx(100 / 131)
    assert worst((free,), 1, engine()) is None


def test_what_lies_side_by_side() -> None:
    strided = [access(*(lane % 16 + 16 * i for lane in range(32))) for i in range(8)]
    owned = [access(*(lane % 16 * 8 + i for lane in range(32))) for i in range(8)]
    k_major = [access(*(lane % 16 * 64 + 8 * i for lane in range(32))) for i in range(8)]

    assert side_by_side(strided) and side_by_side(owned)
    assert not side_by_side(k_major)
