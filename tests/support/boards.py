"""Stored results of a class and of one student's versions, and the commands that read them."""

import csv
import hashlib
import io
from pathlib import Path

import msgspec

from grader.base.gpus import GpuInfo
from grader.base.records import BuildInfo, KernelInfo, Verdict
from grader.labs.submission import SourceFile
from grader.model.records import Advice
from grader.results import store
from grader.results.entries import keep_sources, read_index
from grader.results.ladders import shipped_ladders
from grader.results.result import Result
from grader.study.history import History, make_history
from grader.study.versions import read_versions
from ptxsim.text import phrase
from tests.support import commands
from tests.support.explained import explained
from tests.support.pages import H200, gpu_environment, gpu_result
from tests.support.places import ALICE


def keep(
    out: Path,
    student: str,
    total: float | None,
    *,
    attempt: int = 0,
    gpu: GpuInfo = H200,
    submitted: tuple[str, ...] | None = None,
    **changes: object,
) -> Result:
    """Store a result of noon on a day of January. submitted: by default that is its hand-in."""
    created = f"2026-01-{attempt + 1:02d}T12:00:00+00:00"
    result = gpu_result(student, total, gpu=gpu, created=created, **changes)
    sha = hashlib.sha256(f"{student} {attempt} {gpu.name}".encode()).hexdigest()
    times = (created,) if submitted is None else submitted
    who = msgspec.structs.replace(result.submission, sha256=sha, submitted=times)
    result = msgspec.structs.replace(result, submission=who)
    store.save(out, result)
    return result


def grade(*arguments: str | Path, cwd: Path) -> commands.Done:
    return commands.run(commands.grade(*arguments), cwd)


def rows_of(table: str) -> list[dict[str, str]]:
    """The rows of a CSV table, by column."""
    return list(csv.DictReader(io.StringIO(table, newline="")))


VISIBILITIES = {"hidden", "after_due_date", "after_published", "visible"}
FORMATS = {"text", "html", "simple_format", "md", "ansi"}


def check_gradescope(document: dict[str, object]) -> None:
    """Gradescope's rules for results.json."""
    top = {
        *("score", "execution_time", "output", "output_format", "visibility"),
        *("stdout_visibility", "extra_data", "tests", "leaderboard"),
    }
    assert set(document) <= top
    assert document["visibility"] in VISIBILITIES
    assert document["stdout_visibility"] in VISIBILITIES
    assert document["output_format"] in FORMATS
    tests = document["tests"]
    assert isinstance(tests, list)
    assert "score" in document or (tests and all("score" in test for test in tests))
    fields = {
        *("name", "number", "score", "max_score", "status", "output", "output_format"),
        *("tags", "visibility", "extra_data"),
    }
    for test in tests:
        assert set(test) <= fields
        assert test["status"] in ("passed", "failed")
        assert test["visibility"] in VISIBILITIES
    for entry in document.get("leaderboard", []):  # type: ignore[attr-defined]
        assert set(entry) == {"name", "value", "order"}
        assert entry["order"] in ("asc", "desc")


FIRST, SECOND = "a\nb\nc\n", "a\nB\nc\nd\n"
CONFLICTS = Advice(
    idea="tile32",
    rung=None,
    message=phrase("bank conflicts"),
    file=None,
    line=None,
    gain=2.0,
    rule="bank-conflicts",
)


def version(result: Result, out: Path, source: str, minute: int, registers: int = 40) -> Result:
    """Store it as if ``source`` had been graded then."""
    content = source.encode()
    sha = hashlib.sha256(content).hexdigest()
    who = msgspec.structs.replace(
        result.submission,
        sha256=sha,
        files=(SourceFile(name="sgemm.cu", sha256=sha, size=len(content)),),
    )
    kernel = KernelInfo(name="_Z1kv", registers=registers, shared_bytes=0, spill_bytes=0)
    build = BuildInfo(ok=True, command="", log="", seconds=1, kernels=(kernel,), arch="sm_90")
    stored = msgspec.structs.replace(
        result, submission=who, build=build, created=f"2026-01-02T03:{minute:02}:00+00:00"
    )
    path = store.save(out, stored)
    keep_sources(path, [content])
    return stored


def climbing(out: Path) -> History:
    """Two accepted versions on an H200, and one that does not compile after them."""
    followed = msgspec.structs.replace(CONFLICTS, rule="no-tile")  # it leads to the same rung
    slow = msgspec.structs.replace(explained(ALICE), advice=(followed,))
    better = msgspec.structs.replace(slow, advice=(CONFLICTS,))
    version(gpu_result("alice", 0.3, explanation=slow), out, FIRST, 1)
    version(gpu_result("alice", 0.6, explanation=better), out, SECOND, 2, 96)
    nowhere = msgspec.structs.replace(gpu_environment(), gpu=None)
    changes = {"verdict": Verdict.CE, "cases": (), "score": None, "environment": nowhere}
    version(gpu_result("alice", 0.6, **changes), out, "", 3)
    found, complaints = read_versions(read_index(out).of("alice"))
    assert complaints == []
    return make_history(found, shipped_ladders())
