"""Inputs that nobody can predict: a key per operand, ChaCha12, 32 random bits per element.

Each input of each launch gets a key of 256 bits from the operating system, drawn after the
previous launch has ended. Word i of the key stream gives element i. The stream follows RFC 8439
with nonce 0, a counter from 0, and 12 rounds instead of 20: no attack is known on more than 7, and
a GPU generates inputs in every repetition. ``run/gpu/checks.cu`` computes the same bits there.

A kernel sees its inputs, which reveal 23 of the 32 bits of each word, and at worst the keys of
inputs that exist already. Neither reveals anything about a key that has not been drawn yet.
docs/verification.md has the full argument.
"""

import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from grader.problems.operands import EXPOSING, Exposing, Operand, Steps, Values, Whole

_Made = TypeVar("_Made")
Floats = NDArray[np.float32]
Numbers = Floats | NDArray[np.float64]  # FP64 of Whole, which FP32 need not hold
Words = NDArray[np.uint32]
Places = NDArray[np.int64]  # of elements in an operand's memory

KEY_BYTES = 32
_BLOCK_WORDS = 16
_ROUNDS = 12
_CHUNK = 2048  # blocks at a time: the state stays in the L2
_PART, _THREADS = 1 << 16, 8  # elements that are made at a time, and by how many threads
_CONSTANTS = np.frombuffer(b"expand 32-byte k", np.uint32)
_ZERO_NONCE = bytes(12)


class Source(Protocol):
    """One input, element by element."""

    def at(self, places: Places) -> Numbers:
        """The elements at ``places``, in an array of the same shape."""


def in_parts(count: int, part: Callable[[Places], _Made]) -> list[_Made]:
    """Return what ``part`` makes of the places below ``count``, of so many at a time that they stay
    in the L2. In threads: elements of 2²⁸ places would take one of them seconds."""

    def made(first: int) -> _Made:
        return part(np.arange(first, min(count, first + _PART)))

    with ThreadPoolExecutor(max_workers=_THREADS) as pool:
        return list(pool.map(made, range(0, count, _PART)))


def fresh_key() -> bytes:
    """A key that nobody can know. Draw it only after every launch that must not learn it."""
    return secrets.token_bytes(KEY_BYTES)


def make_inputs(
    operands: Sequence[Operand], keys: Sequence[bytes] = ()
) -> tuple[NDArray[Any], ...]:
    """Make what is given of ``operands`` from its keys, fresh ones unless a test wants the same
    inputs again. Flat, in the order of the memory."""
    inputs = [each for each in operands if each.given]
    keys = keys or [fresh_key() for _ in inputs]
    return tuple(
        each.element.packed(values(key, each.count, each.values))
        for key, each in zip(keys, inputs, strict=True)
    )


def values(key: bytes, count: int, kind: Values = EXPOSING) -> Any:
    """The first ``count`` elements for ``key``. ``checks.cu`` has the same formulas."""
    places = np.arange(count) if isinstance(kind, Whole) else np.empty(0, np.int64)
    return values_of(key_stream(key, count), settled(kind, key), places, count)


def values_of(word: Words, kind: Values, places: Places, count: int) -> Numbers:
    """The elements at ``places`` of ``count``, where a key stream has these words; ``kind`` is
    ``settled``."""
    if isinstance(kind, Whole):
        return _whole(word, kind, places, count)
    return _exposing(word) if isinstance(kind, Exposing) else _steps(word, kind)


def settled(kind: Values, key: bytes) -> Values:
    """The kind, or the one number there is for this key if all are equal."""
    if not isinstance(kind, Whole) or kind.course != "equal":
        return kind
    one = int(key_stream(key, 1)[0]) * kind.below >> 32
    return msgspec.structs.replace(kind, course="random", often=256, first=one, few=1)


def _exposing(word: Words) -> Floats:
    """Signed, with magnitudes in [0.5, 1.5).

    Bit 31 of a word is the sign. Bit 30 picks the half of the range, and bits 20–29 the step of
    TF32's precision in it. Bits 0–10 place the low 13 mantissa bits in 0x1001 … 0x1800, just above
    half of such a step.
    """
    step = word >> 20 & 0x3FF
    upper = np.uint32(0x3F800000) | step >> 1 << 13
    lower = np.uint32(0x3F000000) | step << 13
    bits: Words = np.where(word & 1 << 30, upper, lower) | word & 1 << 31
    bits += (word & 0x7FF) + 0x1001
    return bits.view(np.float32)


def _steps(word: Words, kind: Steps) -> Floats:
    """Bit 31 is the sign, the lowest ``bits`` bits the step: every operation here is exact."""
    step = (word & np.uint32((1 << kind.bits) - 1)) + np.uint32(kind.least)
    magnitude = step.astype(np.float32) * np.float32(2.0**kind.exponent)
    negative = (word >> 31).astype(bool) & kind.signed
    return np.where(negative, -magnitude, magnitude)


def _whole(word: Words, kind: Whole, places: Places, count: int) -> NDArray[np.float64]:
    """Whole numbers of 64 bits; only "power" rounds, as IEEE 754 has it on any machine."""
    at, below = places.astype(np.uint64), np.uint64(kind.below)
    last = np.uint64(max(count - 1, 1))
    random = word.astype(np.uint64)
    within = random * below >> np.uint64(32)
    if kind.course == "random" and kind.often:
        few, high = np.uint64(kind.few), random >> np.uint64(8)
        usual = np.uint64(kind.first) + (high * few >> np.uint64(24))
        among = high * below >> np.uint64(24)
        number = np.where(random & np.uint64(255) < np.uint64(kind.often), usual, among)
    elif kind.course in ("rising", "falling"):
        at = at if kind.course == "rising" else np.uint64(count - 1) - at
        number = (at * below + within) // np.uint64(count)
    elif kind.course == "power":
        share = np.sqrt(np.sqrt(at.astype(np.float64) / np.float64(last)))
        number = (np.float64(kind.below) * share).astype(np.uint64)
    elif kind.course in ("rows", "ragged", "gaps"):
        if kind.course == "gaps":
            at = np.where(at < last, at - at % np.uint64(4), at)
        jitter = within if kind.course == "ragged" else np.zeros_like(within)
        inner = (np.uint64(0) < at) & (at < last)
        number = (at * below + np.where(inner, jitter, np.uint64(0))) // last
    else:
        number = within
    return (number.astype(np.float64) + kind.least) * 2.0**kind.exponent


def key_stream(key: bytes, count: int) -> Words:
    """The first ``count`` words of the key stream."""
    stream = np.empty((-(-count // _BLOCK_WORDS), _BLOCK_WORDS), np.uint32)
    for first in range(0, len(stream), _CHUNK):
        part = stream[first : first + _CHUNK]
        part[:] = chacha_blocks(key, first, len(part))
    return stream.reshape(-1)[:count]


def chacha_blocks(
    key: bytes, first: int, count: int, nonce: bytes = _ZERO_NONCE, rounds: int = _ROUNDS
) -> Words:
    """RFC 8439's block function for the counters from ``first`` on, one row of 16 words each."""
    state = np.empty((_BLOCK_WORDS, count), np.uint32)
    state[:4] = _CONSTANTS[:, None]
    state[4:12] = np.frombuffer(key, np.uint32)[:, None]
    state[12] = np.arange(first, first + count, dtype=np.uint32)
    state[13:] = np.frombuffer(nonce, np.uint32)[:, None]
    work = state.copy()
    a, b, c, d = work[:4], work[4:8], work[8:12], work[12:]
    for _ in range(rounds // 2):
        _quarter_rounds(a, b, c, d)
        # Rotate the diagonals into columns, and back afterwards.
        b[:], c[:], d[:] = b[[1, 2, 3, 0]], c[[2, 3, 0, 1]], d[[3, 0, 1, 2]]
        _quarter_rounds(a, b, c, d)
        b[:], c[:], d[:] = b[[3, 0, 1, 2]], c[[2, 3, 0, 1]], d[[1, 2, 3, 0]]
    work += state
    return work.T


def _quarter_rounds(a: Words, b: Words, c: Words, d: Words) -> None:
    """Four quarter rounds at once, one per row, for all blocks."""
    for x, y, z, left in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x += y
        z ^= x
        z[:] = z << left | z >> (32 - left)
