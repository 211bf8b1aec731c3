"""Every mistake in a curve is one line that names the field."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.base.errors import LabError
from grader.base.language import language
from grader.labs.lab import load_lab
from tests.support.chinese import assert_chinese
from tests.support.files import beside

BASE = beside(__file__, "base.yaml")
CURVE = beside(__file__, "curve.yaml")
TIMES = beside(__file__, "times.yaml")
GROUPS = beside(__file__, "groups.yaml")
RUNG = CURVE.replace("measure: baseline", "measure: rung\n  rung: 16_float4")
PIECES = "scoring.pieces"
MISTAKES = [
    (CURVE, "measure: baseline", "measure: watt", "scoring.measure: expected 'baseline' or 'rung'"),
    (CURVE, "policy: curve", "policy: oj", "scoring.pieces: the policy 'oj' has none; policy: cur"),
    (CURVE, "shape: exp", "shape: round", f"{PIECES}[1].shape: expected 'linear' or 'log' or 'ex"),
    (CURVE, ", rate: 1.5", "", f"{PIECES}[1].rate: missing; the shape 'exp' needs one"),
    (CURVE, "rate: 1.5", "rate: 0", f"{PIECES}[1].rate: expected a number from -100 to 100 that"),
    (CURVE, "rate: 1.5", "rate: .nan", f"{PIECES}[1].rate: expected a number from -100 to 100"),
    (CURVE, "rate: 1.5", "rate: steep", f"{PIECES}[1].rate: expected a number, got 'steep'"),
    (CURVE, "exp, rate: 1.5", "log, rate: -1", f"{PIECES}[1].rate: expected a number > 0, got -1"),
    (CURVE, "exp, rate: 1.5", "log, rate: .inf", f"{PIECES}[1].rate: expected a number > 0"),
    (CURVE, "points: 60", "points: 60, rate: 2", f"{PIECES}[0].rate: a linear piece has none"),
    (CURVE, "to: 1,", "to: 0.5,", f"{PIECES}[1].to: expected more than 0.5, where the piece begi"),
    (CURVE, "to: 1, ", "", f"{PIECES}[1].to: missing; expected a ratio > 0.5, where the piece"),
    (CURVE, "to: 1,", "to: -1,", f"{PIECES}[1].to: expected a ratio > 0, got -1"),
    (CURVE, "points: 100", "points: 50", f"{PIECES}[1].points: expected at least 60, where the"),
    (CURVE, "points: 60", "points: .nan", f"{PIECES}[0].points: expected a number ≥ 0, got nan"),
    (CURVE, "name: high", "name: low", f"{PIECES}[1].name: 'low' is taken by another piece"),
    (CURVE, "name: high", 'name: "a\\nb"', f"{PIECES}[1].name: expected at most 40 characters"),
    (CURVE, "name: high, ", "", f"{PIECES}[1].name: missing; expected at most 40 characters"),
    (CURVE, "  pieces", "  start: {at: 0.7}\n  pieces", f"{PIECES}[0].to: expected more than 0.7"),
    (CURVE, "  pieces", "  start: {by: 1}\n  pieces", "scoring.start.by: unknown key;"),
    (CURVE, "  pieces", "  rung: 01_naive\n  pieces", "scoring.rung: only measure: rung has one"),
    (CURVE, "  pieces", "  checkpoints: [{ratio: 1, score: 1}]\n  pieces", "scoring.checkpoints"),
    (RUNG, "  rung: 16_float4\n", "", "scoring.rung: missing; measure: rung needs the name"),
    (RUNG, "scoring:", f"{GROUPS}scoring:", "scoring.measure: hidden sizes are timed, and only"),
    (TIMES, "[9, 5, 1]", "[9, 5]", "scoring.milliseconds[0].at: expected 3 times: the start, and"),
    (TIMES, "[9, 5, 1]", "[9, 9, 1]", "scoring.milliseconds[0].at[1]: expected less than 9: more"),
    (TIMES, "[9, 5, 1]", "[9, 5, 0]", "scoring.milliseconds[0].at[2]: expected milliseconds > 0"),
    (TIMES, "size: [64, 64, 64]", "size: [6, 6, 6]", "milliseconds[0].size: [6, 6, 6] is none of"),
    (TIMES, "gpu: A, size: [128", "gpu: B, size: [128", "nothing for [128, 64, 64] on A; add an"),
    (TIMES, "[128, 64, 64], at", "[64, 64, 64], at", "milliseconds[1]: the same GPU and size as"),
    (TIMES, "{name: low,", "{name: low, to: 1,", f"{PIECES}[0].to: measure: ms has scoring.mill"),
    (TIMES, TIMES[TIMES.index("  mill") :], "", "scoring.milliseconds: missing; measure: ms needs"),
    (TIMES, "measure: ms", "measure: baseline", f"{PIECES}[0].to: missing; expected a ratio > 0"),
    (TIMES, "  pieces", "  start: {at: 3}\n  pieces", "scoring.start.at: measure: ms has scoring"),
    (CURVE, CURVE[CURVE.index("  pieces") :], "", "scoring.pieces: missing; the policy 'curve'"),
    (CURVE, "60}\n", "0}\n", ""),
]


@pytest.mark.parametrize("text", [CURVE, TIMES, RUNG])
def test_a_whole_one_loads(tmp_path: Path, text: str) -> None:
    (tmp_path / "lab.yaml").write_text(BASE + text)
    assert len(load_lab(tmp_path / "lab.yaml").scoring.pieces) == 2


@pytest.mark.parametrize(("text", "old", "new", "words"), MISTAKES)
def test_a_mistake_is_one_line(tmp_path: Path, text: str, old: str, new: str, words: str) -> None:
    assert old in text
    file = tmp_path / "lab.yaml"
    file.write_text(BASE + text.replace(old, new, 1))
    if not words:  # points may stay the same for a while
        load_lab(file)
        return
    with pytest.raises(LabError) as caught:
        load_lab(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert_chinese(language("zh_CN")(caught.value.message))
