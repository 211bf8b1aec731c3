"""Older result and ladder documents → the present version, as plain JSON.

Documents before version 6 (ladders before 3) know one problem: the product of matrices in FP32 with
B and C column-major, beside cuBLAS, with sizes in fields of their own and speeds in TFLOPS.
"""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec

from grader.model import wrong_elements
from grader.problems.catalogue import DEFAULT, ProblemRef, load_problem

_NAMES = ("m", "n", "k")
_AMOUNT = re.compile(r"([0-9]{1,18}) of ([0-9]{1,18}) elements are wrong")
_SPEEDS = {
    "bench_tflops": "speed",
    "cublas_tflops": "baseline_speed",
    "tflops": "speed",
    "peak_tflops": "peak",
}


def upgraded_result(document: Any) -> Any:
    """A result of version 1 to 6."""
    if isinstance(document, dict) and document.get("version") != 6:
        document = _of_any_problem(document)
    return _with_messages(document)


def _with_messages(document: Any) -> Any:
    """Version 6 has plain English sentences."""
    if not isinstance(document, dict):
        return document
    _said(document, "error")
    cases = _list(document.get("cases"))
    for each in cases + _list(document.get("findings")):
        _said(each, "message")
    for watched in (((each.get("timing") or {}).get("watched") or {}) for each in cases):
        for field in ("slowed", "unseen"):
            if field in watched:
                watched[field] = [_message(text) for text in watched[field]]
    if isinstance(why := document.get("explanation"), dict):
        _said(why, "missing")
        for each in _list(why.get("advice")):
            _said(each, "message")
    return document


def _said(record: dict[str, Any], field: str) -> None:
    if isinstance(text := record.get(field), str):
        record[field] = _message(text)


def _message(text: str) -> dict[str, Any]:
    """Sentences without figures or names are those of today, and have their translations."""
    amount = _AMOUNT.match(text)
    if amount is None:
        return {"text": text}
    wrong, total = (int(each) for each in amount.groups())
    said = msgspec.to_builtins(wrong_elements(wrong, total))
    return {"text": "{amount}{rest}", "args": {"amount": said, "rest": text[amount.end() :]}}


def _of_any_problem(document: Any) -> Any:
    """Versions 1 to 5 know one problem."""
    document = _renamed(document, _SPEEDS)
    if not isinstance(document, dict):
        return document
    document["problem"] = _problem()
    for case in _list(document.get("cases")):
        extents = _sized(case)
        if isinstance(error := case.get("error"), dict):
            error |= {"operand": "C", "shape": extents[:2]}
            if isinstance(first := error.get("first_mismatch"), dict):
                row, column = first.pop("row"), first.pop("col")
                first |= {"index": [row, column], "element": f"C[row {row}, column {column}]"}
    if isinstance(standing := document.get("standing"), dict):
        _sized(standing, amount=False)
    if isinstance(why := document.get("explanation"), dict):
        extents = _explained(why)
        m, n, k = extents
        why |= {"operations": 2 * m * n * k, "bytes": 4 * (m * k + k * n + m * n)}
        for bound in _list(why.get("bounds")):
            _explained(bound)
    return document


def upgraded_ladder(document: Any) -> Any:
    """A ladder of version 1 or 2."""
    document = _renamed(document, {"tflops": "rate", "cublas_tflops": "baseline"})
    if not isinstance(document, dict):
        return document
    document["problem"] = _problem()
    for step in _list(document.get("steps")):
        for speed in _list(step.get("speeds")):
            _sized(speed)
    return document


def _problem() -> Any:
    return msgspec.to_builtins(load_problem(ProblemRef(source=DEFAULT, options={})).info())


def _sized(record: dict[str, Any], *, amount: bool = True) -> list[int]:
    """Put m, n and k into ``size``; gives the extents."""
    extents = [record.pop(name) for name in _NAMES]
    record["size"] = dict(zip(_NAMES, extents, strict=True))
    if amount:
        record["amount"] = 2 * math.prod(extents)
    return extents


def _explained(record: dict[str, Any]) -> list[int]:
    extents: list[int] = record["size"]
    record["size"] = dict(zip(_NAMES, extents, strict=True))
    return extents


def _list(value: Any) -> list[dict[str, Any]]:
    return value if isinstance(value, list) else []


def _renamed(value: Any, names: dict[str, str]) -> Any:
    """Keys with other names, at any depth; the values are lists and mappings of their own."""
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    if isinstance(value, dict):
        return {names.get(key, key): _renamed(each, names) for key, each in value.items()}
    return value
