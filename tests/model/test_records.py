"""What every record that travels between rooms promises."""

from __future__ import annotations

import pytest

from grader import model
from grader.model import Record, Verdict
from tests.support.results import make_result

RECORDS = [
    found for found in vars(model).values() if isinstance(found, type) and issubclass(found, Record)
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_a_record_is_frozen(record: type[Record]) -> None:
    assert record.__struct_config__.frozen


def test_a_result_cannot_be_changed() -> None:
    result = make_result()
    with pytest.raises(AttributeError):
        result.verdict = Verdict.IE  # type: ignore[misc]
