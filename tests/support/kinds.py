"""Kinds of whole numbers in elements of every type."""

from grader.problems.operands import (
    BF16,
    DOUBLE,
    FLOAT,
    HALF,
    INT8,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    Element,
    Whole,
)

KINDS: dict[str, tuple[Element, Whole]] = {
    "bytes": (UINT8, Whole(below=256)),
    "keys": (UINT32, Whole(below=1 << 32)),
    "negative": (INT8, Whole(below=256, least=-128)),
    "long": (INT64, Whole(below=1 << 32, least=-(1 << 31), exponent=31)),
    "longest": (UINT64, Whole(below=1 << 32, exponent=32)),
    "skewed": (UINT16, Whole(below=4096, often=240, first=17, few=3)),
    "tails": (FLOAT, Whole(below=200 << 16, least=-100 << 16, exponent=-16, often=250, few=1)),
    "half": (HALF, Whole(below=2048, exponent=-4)),
    "bf16": (BF16, Whole(below=256)),
    "double": (DOUBLE, Whole(below=1 << 32, exponent=-20)),
    "equal": (INT8, Whole(below=100, course="equal")),
    **{
        course: (UINT32, Whole(below=40_000, course=course))
        for course in ("rising", "falling", "rows", "ragged", "gaps", "power")
    },
}
