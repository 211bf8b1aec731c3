"""Lab files that ask for whole programs, and skeletons that become such labs."""

import shutil
from pathlib import Path

import pytest
import yaml

from grader.base import LabError
from grader.labs import lab_of_skeleton
from grader.labs.lab import find_lab, load_lab
from tests.support.files import beside, table
from tests.support.places import ROOT

SKELETON, SOLUTION = ROOT / "starters" / "heat", ROOT / "reference" / "heat" / "01_two_buffers"


@pytest.mark.parametrize(("old", "new", "words"), table(__file__, "programs.txt"))
def test_a_mistake_is_one_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    text = find_lab("heat").read_text()
    assert old in text
    (tmp_path / "lab.yaml").write_text(text.replace(old, new.replace("\\n", "\n")))
    with pytest.raises(LabError) as caught:
        load_lab(tmp_path / "lab.yaml")
    said = str(caught.value)
    assert words in said
    assert said.startswith(f"{tmp_path}/lab.yaml: ")
    assert "\n" not in said


def test_the_hash_covers_the_courses_files_and_the_solution(tmp_path: Path) -> None:
    lab = tmp_path / "heat.yaml"
    shutil.copy(find_lab("heat"), lab)
    for kind in ("starters", "reference"):
        shutil.copytree(ROOT / kind / "heat", tmp_path / kind / "heat")
    seen = {load_lab(lab).sha256}
    for name in ("starters/heat/main.cu", "reference/heat/01_two_buffers/heat.cu"):
        with (tmp_path / name).open("a") as file:
            file.write("// changed\n")
        seen.add(load_lab(lab).sha256)
    assert len(seen) == 3
    lab.write_text(lab.read_text() + "time: {due: '2026-01-31T23:59Z'}\n")
    dated = load_lab(lab).sha256
    lab.write_text(lab.read_text().replace("01-31", "02-28"))
    assert load_lab(lab).sha256 == dated


def imported(tmp_path: Path, *student: str) -> dict[str, object]:
    """The lab file of the skeleton, which must be right."""
    files = lab_of_skeleton(tmp_path / "skeleton", SOLUTION, "mine", student, ("8 9 {seed}", ""))
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    load_lab(tmp_path / "mine.yaml")
    document: dict[str, object] = yaml.safe_load(files["mine.yaml"])
    return document


def test_a_skeleton_becomes_a_lab(tmp_path: Path) -> None:
    shutil.copytree(SKELETON, tmp_path / "skeleton")
    (tmp_path / "skeleton" / "Makefile").write_text(beside(__file__, "Makefile"))
    (tmp_path / "skeleton" / "another.cu").write_text("int main() {}")  # that is not built
    document = imported(tmp_path)
    assert document["files"] == {"student": ["heat.cu"], "course": ["heat.h", "main.cu"]}
    options, libraries = ["-O3", "-DSIDE=4", "-I."], ["m"]
    assert document["build"] == {"std": "c++14", "options": options, "libraries": libraries}
    assert document["cases"] == [
        {"name": "case-1", "arguments": ["8", "9", "{seed}"]},
        {"name": "case-2", "arguments": []},
    ]


def test_kernels_without_main_are_the_students(tmp_path: Path) -> None:
    shutil.copytree(SKELETON, tmp_path / "skeleton")
    shutil.copy(SOLUTION / "heat.cu", tmp_path / "skeleton")  # no TODO is left
    assert imported(tmp_path) == imported(tmp_path, "heat.cu")
    with pytest.raises(LabError, match=r"main\.cu is not in the skeleton and in the solution"):
        imported(tmp_path, "main.cu")
