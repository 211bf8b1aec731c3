"""Every mistake in a curve is one line that names the field."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.base.errors import LabError
from grader.base.language import language
from grader.labs.lab import load_lab
from tests.support.catalogues import assert_chinese
from tests.support.files import beside, table

BASE = beside(__file__, "base.yaml")
CURVE = beside(__file__, "curve.yaml")
TIMES = beside(__file__, "times.yaml")
GROUPS = beside(__file__, "groups.yaml")
RUNG = CURVE.replace("measure: baseline", "measure: rung\n  rung: 16_float4")
MISTAKES = table(__file__, "curve_mistakes.txt")


@pytest.mark.parametrize("text", [CURVE, TIMES, RUNG])
def test_a_whole_one_loads(tmp_path: Path, text: str) -> None:
    (tmp_path / "lab.yaml").write_text(BASE + text)
    assert len(load_lab(tmp_path / "lab.yaml").scoring.pieces) == 2


@pytest.mark.parametrize(("name", "old", "new", "words"), MISTAKES)
def test_a_mistake_is_one_line(tmp_path: Path, name: str, old: str, new: str, words: str) -> None:
    text = {"curve": CURVE, "times": TIMES, "rung": RUNG}[name]
    if old.endswith("…"):
        old = text[text.index("\n  " + old[:-1]) + 1 :]
    else:
        old = old.encode().decode("unicode_escape")
    new = new.encode().decode("unicode_escape").replace("$GROUPS", GROUPS)
    assert old in text
    file = tmp_path / "lab.yaml"
    file.write_text(BASE + text.replace(old, new, 1))
    if not words:  # points may stay the same for a while
        load_lab(file)
        return
    with pytest.raises(LabError) as caught:
        load_lab(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert words.replace("$PIECES", "scoring.pieces") in str(caught.value)
    assert "\n" not in str(caught.value)
    assert_chinese(language("zh_CN")(caught.value.message))
