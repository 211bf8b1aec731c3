"""Every example of a lab file in the documents loads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.labs.lab import load_lab
from grader.results.ladders import shipped_ladders
from tests.support.places import ROOT

BASE = """\
id: example
correctness: [[1, 1, 1]]
performance: [{mnk: [8192, 8192, 8192]}]
cpu: [[1, 1, 1], [33, 17, 20]]
"""
PAGES = ("lab-file.md", "instructor.md")
EXAMPLES = [
    (page, found[1])
    for page in PAGES
    for found in re.finditer(r"```yaml\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
]


def test_there_are_examples_of_every_rule() -> None:
    begun = [text.split(":")[0] for _, text in EXAMPLES]
    assert begun.count("scoring") >= 3 and begun.count("time") >= 2 and "groups" in begun


@pytest.mark.parametrize(("page", "text"), EXAMPLES)
def test_an_example_loads(tmp_path: Path, page: str, text: str) -> None:
    file = tmp_path / "lab.yaml"
    whole = text if "performance:\n" in text and text.startswith("id:") else BASE + text
    file.write_text(whole)
    (tmp_path / "hidden.seed").write_text("sixteen bytes and more")
    lab = load_lab(file)
    if lab.scoring.rung:
        names = {step.rung.name for each in shipped_ladders() for step in each.steps}
        assert lab.scoring.rung in names
    if lab.hidden:
        assert lab.hidden.known


def test_the_shipped_curve_is_the_one_in_the_documents(tmp_path: Path) -> None:
    shipped = load_lab(ROOT / "grader" / "labs" / "sgemm-curve.yaml").scoring
    (tmp_path / "lab.yaml").write_text(BASE + EXAMPLES[0][1])
    assert load_lab(tmp_path / "lab.yaml").scoring == shipped
