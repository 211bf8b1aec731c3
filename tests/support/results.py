"""Result documents made by hand, for the tests of what comes after the judge."""

from __future__ import annotations

from pathlib import Path

import msgspec

from grader.base.explanation import Explanation
from grader.base.result import SCHEMA, SCHEMA_VERSION, Result
from tests.support.product import GEMM

# An accepted result of the simulator, with a wrong case and a finding beside the right one.
_DOCUMENT = msgspec.json.decode(Path(__file__).with_name("result.json").read_bytes(), type=Result)
SHA = _DOCUMENT.lab.sha256
RIGHT, WRONG = _DOCUMENT.cases
(RACE,) = _DOCUMENT.findings
NOTHING_KNOWN = Explanation(
    arch="sm_90", size={"m": 1024, "n": 1024, "k": 1024}, operations=2, bytes=12, kernels=(),
    counts=(), tile=None, bounds=(), advice=(), missing=None,
)  # fmt: skip


def make_result(student: str = "alice", **changes: object) -> Result:
    """An accepted result, with ``changes`` to its fields."""
    given: dict[str, object] = {
        "schema": SCHEMA,
        "version": SCHEMA_VERSION,
        "problem": GEMM.info(),
        "submission": msgspec.structs.replace(_DOCUMENT.submission, student=student),
        "cases": (RIGHT,),
        "findings": (),
        **changes,
    }
    return msgspec.structs.replace(_DOCUMENT, **given)
