"""Describes the values of an operand to the kernels of checks.cu, which make and check them."""

from typing import Any

import numpy as np

from grader.problems import Element, Exposing, Values, Whole, settled

# What an array holds, in the order of checks.cu: whole numbers by their bytes, and BF16 apart.
_FORMATS = {"float32": 0, "float16": 1, "float64": 3, 1: 4, 2: 5, 4: 6, 8: 7}
_BF16 = 2
_COURSES = ("random", "rising", "falling", "rows", "ragged", "gaps", "power")


def source_of(key: bytes, values: Values, element: Element) -> tuple[Any, ...]:
    """The arguments of ``fill`` and ``changed`` behind the length: the key, and ``Kind``."""
    values = settled(values, key)
    kind, mask, least, exponent, signed, below = 0, 0, 0, 0, False, 1
    skew = (0, 0, 0, 1)
    if isinstance(values, Whole):
        kind, least, exponent, below = 2, values.least, values.exponent, values.below
        skew = (_COURSES.index(values.course), values.often, values.first, values.few)
    elif not isinstance(values, Exposing):
        kind, mask, least = 1, (1 << values.bits) - 1, values.least
        exponent, signed = values.exponent, values.signed
    form = _BF16 if element.upper else _FORMATS[element.bytes if element.whole else element.dtype]
    words, unit = np.frombuffer(key, np.uint64), np.float32(2.0**exponent)
    numbers = (np.uint32(kind), np.uint32(mask), np.int32(least), unit, np.uint32(signed))
    return (*words, np.uint64(below), *numbers, *map(np.uint32, (form, *skew)))
