"""Curves and hidden sizes on a real GPU. Skipped, with the reason, where there is none."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from grader.backends.probe import first_gpu_arch, gpu_names
from grader.labs.lab import Lab, load_lab
from grader.model import Result, Verdict
from grader.report.curve import next_sentence
from grader.results import store
from tests.support.commands import STARTER, grade, run
from tests.support.places import ROOT

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(first_gpu_arch() is None, reason="no NVIDIA GPU here"),
    pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed"),
]

LAB = """\
id: sealed
correctness: [[33, 65, 17]]
performance: [{mnk: [1024, 1024, 1024]}]
cpu: [[33, 17, 20]]
scoring:
  policy: curve
  runs: 1
  pieces:
    - {name: low, to: 0.5, points: 60}
    - {name: high, to: 1, points: 100, shape: exp, rate: 1.5}
groups:
  public: {weight: 60}
  hidden:
    weight: 40
    seed_file: hidden.seed
    cpu: [{ranges: [[211, 241], [131, 161], [11, 29]]}]
    performance: [{ranges: [[1101, 1999], [1101, 1999], [1101, 1999]], count: 2}]
    correctness: [{ranges: [[301, 399], [301, 399], [301, 399]]}]
"""
SECRETS = ("the secret of one course", "that of the year after it")
WRONG_AT_HIDDEN = STARTER.replace("] = sum;", "] = m > 300 && m != 1024 ? 1000.0f * m + n : sum;")


def graded(place: Path, secret: str, kernel: Path | str) -> tuple[Result, Lab, str]:
    place.mkdir()
    (place / "lab.yaml").write_text(LAB)
    (place / "hidden.seed").write_text(secret)
    if isinstance(kernel, Path):
        shutil.copytree(kernel, place / "eve")
    else:
        (place / "eve").mkdir()
        (place / "eve" / "sgemm.cu").write_text(kernel)
    done = run(grade("eve", "--lab", "lab.yaml", "--device", "gpu"), place)
    assert done.returncode in (0, 1), done.stderr
    result = store.load(next(store.stored(place / "results")))
    return result, load_lab(place / "lab.yaml"), done.stderr


def test_groups_and_a_curve_are_scored(tmp_path: Path) -> None:
    result, lab, printed = graded(tmp_path / "a", SECRETS[0], ROOT / "submissions" / "alice")
    assert result.verdict is Verdict.AC and result.score is not None
    public, hidden = result.groups
    assert (hidden.sizes, hidden.right) == (3, 3)
    assert public.points is not None and hidden.points is not None
    assert hidden.points == round(hidden.points)
    expected = 0.6 * public.points + 0.4 * hidden.points
    assert result.score.total == pytest.approx(expected, abs=0.02)
    assert str(next_sentence(result)) in " ".join(printed.split())
    assert [case.id for case in result.cases] == ["correctness-0", "performance-0"]
    assert lab.hidden is not None
    page = next((tmp_path / "a" / "results").rglob("*.html")).read_text()
    for case in (*lab.hidden.performance, *lab.hidden.correctness):
        assert str(case.size) not in page + printed


def test_two_secrets_tell_the_same(tmp_path: Path) -> None:
    told: list[Any] = []
    for number, secret in enumerate(SECRETS):
        result, lab, printed = graded(tmp_path / str(number), secret, WRONG_AT_HIDDEN)
        assert result.verdict is Verdict.WA
        assert result.groups[1].right == 0 and result.groups[1].points == 0
        document = json.loads(store.encode(result))
        assert lab.hidden is not None
        sizes = [*lab.hidden.performance, *lab.hidden.correctness, *lab.hidden.cpu]
        assert not any(str(case.size) in printed for case in sizes)
        # What was measured at public sizes differs from run to run.
        said = [line for line in printed.splitlines() if line.startswith(("eve: ", "Hidden"))]
        stages = [re.sub(r"[\d.]+", "N", line) for line in said]
        told.append((document["findings"], document["groups"][1], document["launches"], stages))
    assert told[0] == told[1]


def test_a_gpu_that_the_lab_does_not_know_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text(
        LAB[: LAB.index("scoring")]
        + "scoring:\n  policy: curve\n  measure: ms\n  pieces: [{name: only, points: 100}]\n"
        "  milliseconds: [{gpu: Some GPU, size: [1024, 1024, 1024], at: [9, 1]}]\n"
    )
    shutil.copytree(ROOT / "submissions" / "alice", tmp_path / "alice")
    done = run(grade("alice", "--lab", "lab.yaml", "--device", "gpu"), tmp_path)
    assert done.returncode == 2
    assert f"the lab has times for Some GPU, none for {gpu_names()[0]}" in done.stderr
    assert "Traceback" not in done.stderr
