"""Kits: what they hold, and that a course system's machine can grade with them."""

import json
import os
import shutil
import stat
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy
import pytest
import yaml

from grader.base.native import cache_folder
from grader.course import kits
from grader.labs.lab import find_lab, load_lab
from ptxsim.plan import Record
from tests.support.boards import check_gradescope
from tests.support.commands import QUICK, STARTER, Done, assert_clean_shell, grade, one_line, run
from tests.support.container import Container, base
from tests.support.corpus import Fixture, cheats
from tests.support.places import ALICE

LAB = QUICK.replace(" [2, 3, 5],", "")
HIDING = f"""{LAB}groups:
  public: {{weight: 2}}
  hidden:
    weight: 1
    seed_file: hidden.seed
    cpu: [{{ranges: [77, 9, 31]}}]
    performance: [{{ranges: [64, 64, 128]}}]
"""
SEED = "0123456789abcdef0123456789abcdef"
RIGHT = {"sgemm.cu": STARTER}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("course")
    (folder / "lab.yaml").write_text(LAB)
    (folder / "hiding.yaml").write_text(HIDING)
    (folder / "hidden.seed").write_text(SEED)
    return folder


def kit(place: Path, *arguments: str) -> None:
    done = run(grade("kit", *arguments), place)
    assert done.returncode == 0, done.stderr


# --- what they hold ---------------------------------------------------------------------------


def test_gradescope(place: Path) -> None:
    kit(place, "gradescope", "--lab", "hiding.yaml")
    with zipfile.ZipFile(place / "autograder.zip") as archive:
        names = {name.partition("/")[0] for name in archive.namelist()}
        assert {"setup.sh", "run_autograder", "lab.yaml", "hidden.seed"} <= names
        run_mode = archive.getinfo("run_autograder").external_attr >> 16
        assert stat.S_IMODE(run_mode) == 0o755
        for name in ("setup.sh", "run_autograder", "grade_here.sh"):
            assert_clean_shell(script=archive.read(name).decode())
        first = archive.read("lab.yaml")
    assert first.decode() == HIDING


def test_a_wrong_lab_makes_no_kit(place: Path) -> None:
    (place / "wrong.yaml").write_text("id: x\n")
    one_line(run(grade("kit", "csoj", "--lab", "wrong.yaml"), place), 2, "wrong.yaml")
    assert not (place / "csoj").exists()


def test_github(place: Path) -> None:
    """Against the schema of GitHub's workflows, and the names that Classroom looks for."""
    kit(place, "github", "--lab", "lab.yaml", "--folder", "src: #1", "--code-scanning")
    file = place / ".github" / "workflows" / "classroom.yml"
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "github-workflows"]
    done = subprocess.run([*check, str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    workflow: dict[str, Any] = yaml.safe_load(file.read_text())
    assert workflow["name"] == "Autograding Tests"
    (job,) = workflow["jobs"].values()
    assert list(workflow["jobs"]) == ["run-autograding-tests"]
    assert job["env"]["FOLDER"] == "src: #1"
    for step in job["steps"]:
        if "run" in step:
            assert_clean_shell(script=f"#!/bin/bash\n{step['run']}")
    assert (place / ".github" / "lab.yaml").read_text() == LAB


def test_a_kit_of_whole_programs(tmp_path: Path) -> None:
    """It loads without the grader's own folders, and tells students nothing of hidden cases."""
    about = kits.Container(minutes=5, memory_mb=2048, sandbox="auto")
    files = kits.csoj_kit(find_lab("heat"), "image", about)
    for name in ("lab.yaml", *(name for name in files if "/" in name)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(files[name].content)
    found = load_lab(tmp_path / "lab.yaml").program
    assert found and found.starter == tmp_path / "starters" / "heat"
    assert {each.name for each in found.starter.iterdir()} == {"heat.cu", "heat.h", "main.cu"}
    assert b'"show": false' in files["problem.json"].content


@pytest.mark.sampled
def test_githubs_steps_grade_a_repository(place: Path, tmp_path: Path) -> None:
    """The commands of the workflow, run in a repository as its runner does."""
    kit(place, "github", "--lab", "lab.yaml", "--code-scanning", "--to", str(tmp_path))
    broken = STARTER.replace("if (i >= m || j >= n) return;", "")
    (tmp_path / "sgemm.cu").write_text(broken)
    steps = yaml.safe_load((tmp_path / ".github/workflows/classroom.yml").read_text())
    commands = [each for each in steps["jobs"]["run-autograding-tests"]["steps"] if "run" in each]
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    program = bin_folder / "grade"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m grader.cli "$@"\n')
    program.chmod(0o755)
    variables = {
        "FOLDER": ".",
        "RUNNER_TEMP": str(place),
        "GITHUB_WORKSPACE": str(tmp_path),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
    }
    grading, findings = (
        run(["bash", "-e", "-c", each["run"]], tmp_path, **variables) for each in commands[1:]
    )
    assert grading.returncode == 1, grading.stderr  # the push is marked as failed
    off, *_, last = grading.stdout.splitlines()
    assert off.startswith("::stop-commands::")
    assert "Autograding report" in last
    line = next(n for n, text in enumerate(broken.splitlines(), 1) if "sum += A" in text)
    assert f"::error file=sgemm.cu,line={line},title=out-of-bounds::" in grading.stdout
    assert "RE runtime error" in (tmp_path / "summary.md").read_text()
    assert "points=" in (tmp_path / "output").read_text()
    assert findings.returncode == 0, findings.stderr
    sarif = json.loads((tmp_path / "findings.sarif").read_text())
    assert {each["ruleId"] for each in sarif["runs"][0]["results"]} >= {"out-of-bounds"}


@pytest.mark.sampled
def test_csoj(place: Path, tmp_path: Path) -> None:
    kit(place, "csoj", "--lab", "hiding.yaml")
    problem = json.loads((place / "csoj" / "problem.json").read_text())
    (step,) = problem["workflow"]
    assert (step["root"], step["network"], step["show"]) == (False, False, False)
    assert problem["score"]["mode"] == "score"
    script = (place / "csoj" / "judge").read_text()
    assert_clean_shell(script=script)
    # The script itself, with the folders of the container somewhere else.
    here, work = tmp_path / "here", tmp_path / "work"
    (here / "cache").mkdir(parents=True)
    work.mkdir()
    (here / "lab.yaml").write_text(HIDING)
    (here / "hidden.seed").write_text(SEED)
    script = script.replace("/opt/sgemm-grader", str(here)).replace("/mnt/work", str(work))
    script = script.replace(" grade ", f" {sys.executable} -m grader.cli ")
    script = script.replace("--sandbox require", "--sandbox auto")
    script = script.replace("SGEMM_GRADER_CACHE=$scratch/cache", "UNUSED=$scratch/cache")
    script = script.replace('"$SGEMM_GRADER_CACHE" #', '"$UNUSED" #')
    (work / "sgemm.cu").write_text(
        STARTER.replace("< m", "<= m").replace("sum;", "sum + (m > 70);")
    )
    (tmp_path / "forged").mkdir()
    (work / ".csoj").symlink_to(tmp_path / "forged")
    done = run(["bash", "-c", script], tmp_path)
    assert done.returncode == 0, done.stderr  # a step that fails would have no score
    last = done.stdout.splitlines()[-1]
    read = json.loads(last)
    assert read == json.loads((work / ".csoj" / "result.json").read_text())
    assert read["score"] == 66
    assert "77×9×31" not in last
    assert not list((tmp_path / "forged").iterdir())
    (work / "sgemm.cu").unlink()
    done = run(["bash", "-c", script.replace("lab.yaml", "no.yaml")], tmp_path)
    assert done.returncode == 3
    assert done.stdout == ""
    assert not (work / ".csoj").exists()


# --- on a machine like Gradescope's -----------------------------------------------------------

MEMORY_MB = 2048
_SITE = Path(numpy.__file__).parents[1]
_OWN = (
    *("sgemm_grader", "ptxsim", "__editable__", "_editable", "pip"),
    *("setuptools", "distutils", "_distutils", "pkg_res"),
)
_PACKAGES = "/opt/dependencies"
_NOBODY = 65534
_METADATA = {
    "id": 4711,
    "created_at": "2026-11-22T03:04:05.678901+00:00",
    "assignment": {"id": 17, "title": "SGEMM", "total_points": "10.0", "due_date": None},
    "users": [{"id": 1, "name": "Al Davis, Jr.", "email": "al@example.edu"}],
    "submission_method": "upload",
    "previous_submissions": [],
}


class Graded(Record):
    status: int
    results: dict[str, Any] | None  # null: Gradescope says that the autograder failed
    printed: str
    seconds: float


class Autograder:
    """One image: the kit, unpacked and set up."""

    def __init__(self, root: Path, kit: Path) -> None:
        self.root = root
        root.chmod(0o755)
        source = root / "source"
        with zipfile.ZipFile(kit) as archive:
            archive.extractall(source)
            for entry in archive.infolist():
                (source / entry.filename).chmod(entry.external_attr >> 16 & 0o777)
        shutil.copy(source / "run_autograder", root)
        packages = root / "venv" / "lib" / "python3.11" / "site-packages"
        packages.mkdir(parents=True)
        (packages / "dependencies.pth").write_text(f"{_PACKAGES}\n")
        mounts = [
            (entry, f"{_PACKAGES}/{entry.name}")
            for entry in sorted(_SITE.iterdir())
            if not entry.name.startswith(_OWN)
        ]
        self._container: Container = msgspec.structs.replace(
            base(), mounts=((root, "/autograder"), *mounts)
        )

    def bring_compiled(self) -> None:
        """What the grader has compiled here: the same compiler would make it again in a minute."""
        native = self.root / "cache" / "native"
        shutil.copytree(cache_folder() / "native", native)
        for path in (native.parent, native, *native.rglob("*")):
            shutil.chown(path, _NOBODY, _NOBODY)
        native.parent.chmod(0o700)

    def set_up(self) -> Done:
        return self._inside("bash", "/autograder/source/setup.sh")

    def grade(self, files: Mapping[str, str | bytes] | Path) -> Graded:
        """Hand in these files, or this folder, and run the autograder."""
        place = self.root / "submission"
        shutil.rmtree(place, ignore_errors=True)
        if isinstance(files, Path):
            shutil.copytree(files, place, symlinks=True)
        else:
            place.mkdir()
            for name, content in files.items():
                data = content.encode() if isinstance(content, str) else content
                (place / name).write_bytes(data)
        results = self.root / "results"
        shutil.rmtree(results, ignore_errors=True)
        results.mkdir()
        (self.root / "submission_metadata.json").write_text(json.dumps(_METADATA))
        started = time.monotonic()
        done = self._inside("/autograder/run_autograder")
        file = results / "results.json"
        return Graded(
            status=done.returncode,
            results=json.loads(file.read_text()) if file.exists() else None,
            printed=done.stdout + done.stderr,
            seconds=time.monotonic() - started,
        )

    def _inside(self, *command: str) -> Done:
        options = ("--env", "PIP_NO_INDEX=1", "--memory", f"{MEMORY_MB}m")
        return self._container.run(*command, options=options, cwd="/autograder", timeout=600)


@pytest.fixture(scope="module")
def autograder(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Autograder]:
    kit(place, "gradescope", "--lab", "hiding.yaml", "--to", "full.zip")
    image = Autograder(tmp_path_factory.mktemp("autograder"), place / "full.zip")
    image.bring_compiled()
    made = image.set_up()
    assert made.returncode == 0, made.stderr
    assert "AC accepted" in made.stdout
    yield image


def results(graded: Graded) -> dict[str, Any]:
    assert graded.status == 0, graded.printed
    assert graded.results is not None
    assert graded.seconds < 300  # of Gradescope's 600
    check_gradescope(graded.results)
    return graded.results


def scores(document: dict[str, Any], visibility: str) -> list[float]:
    tests = document["tests"]
    return [test["score"] for test in tests if test["visibility"] == visibility]


@pytest.mark.slow
def test_gradescope_grades(autograder: Autograder) -> None:
    document = results(autograder.grade(ALICE))
    assert (scores(document, "visible"), scores(document, "hidden")) == ([1, 1], [1])
    assert document["stdout_visibility"] == "hidden"

    only_hidden = STARTER.replace("] = sum;", "] = sum + (m == 77);")
    document = results(autograder.grade({"sgemm.cu": only_hidden}))
    assert (scores(document, "visible"), scores(document, "hidden")) == ([1, 1], [0])
    assert "77" not in document["output"]

    for name, text, words in (
        ("sgemm.cu", STARTER.replace("float sum = 0.0f;", "?"), "CE compile error"),
        ("notes.txt", "none", "sgemm.cu is missing"),
    ):
        document = results(autograder.grade({name: text}))
        assert document["score"] == 0
        assert words in document["output"]


HOSTILE = ("fork_bomb", "takes_all_memory", "fills_the_disk", "never_ends", "template_bomb")


@pytest.mark.nightly
@pytest.mark.parametrize(
    "cheat",
    [each for each in cheats() if each.folder.name in HOSTILE],
    ids=lambda cheat: cheat.folder.name,
)
def test_gradescope_survives_hostile_submissions(autograder: Autograder, cheat: Fixture) -> None:
    """Within its time and 2 GB; the next submission is graded as before."""
    document = results(autograder.grade(cheat.folder))
    assert document["extra_data"]["verdict"] == cheat.cpu.verdict.value
    document = results(autograder.grade(RIGHT))
    assert sum(scores(document, "visible")) == 2


@pytest.mark.slow
def test_gradescope_keeps_its_secrets(autograder: Autograder) -> None:
    """Neither the compiler nor anything that it prints shows the lab's hidden sizes."""
    for name in ("lab.yaml", "hidden.seed"):
        peek = f'#include "/autograder/source/{name}"\n'
        document = results(autograder.grade({"sgemm.cu": peek + STARTER}))
        assert document["score"] == 0
        assert "77" not in document["output"]
        assert SEED not in document["output"]


@pytest.mark.nightly
def test_gradescope_refuses_what_is_huge(autograder: Autograder) -> None:
    many = {f"{i}.txt": "" for i in range(5000)}
    document = results(autograder.grade({**RIGHT, **many}))
    assert (document["score"], "more than 4096 files" in document["output"]) == (0, True)
    document = results(autograder.grade({"sgemm.cu": "//" + "x" * (64 << 20)}))
    assert document["score"] == 0


@pytest.mark.nightly
def test_gradescopes_autograder_fails_rather_than_give_a_zero(autograder: Autograder) -> None:
    """No results.json, a status, and a sentence for the instructor."""
    packages = autograder.root / "venv" / "lib" / "python3.11" / "site-packages"
    for file, words in (
        (packages / "dependencies.pth", ""),  # Python ends with status 1, as for a wrong answer
        (autograder.root / "source" / "lab.yaml", "id: ?"),
    ):
        before = file.read_text()
        file.write_text(words)
        graded = autograder.grade(RIGHT)
        file.write_text(before)
        assert graded.status > 1
        assert graded.results is None
        assert "says nothing about the submission" in graded.printed
    assert sum(scores(results(autograder.grade(RIGHT)), "visible")) == 2
