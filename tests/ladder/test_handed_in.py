"""``grade ladder --send`` and ``--check``: what a whole file is, and what gives a bad one away."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

import grader
from grader.backends.statistics import Pair, summarise
from grader.cli import entry as cli
from grader.hardware import gpus
from grader.labs.lab import LADDER_LAB, load_lab
from grader.ladder.document import make_ladder
from grader.ladder.handed_in import HandedIn, hand_in
from grader.ladder.plausible import Here, complaints
from grader.model import (
    Bound,
    CaseResult,
    Explanation,
    LabRef,
    Limit,
    Result,
    Size,
    Verdict,
    Watched,
    verbatim,
)
from grader.submission.folder import load_listed
from tests.support.pages import RUNGS, gpu_environment
from tests.support.places import REFERENCE
from tests.support.product import GEMM, MAIN
from tests.support.results import RIGHT, make_result

CARD = next(gpu for gpu in gpus.known() if gpu.name == "RTX 2080 Ti")
BEGUN = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
LAST = RUNGS[-1].name
LATE = "03_one_block"  # takes too long on purpose


@cache
def here() -> Here:
    sources = {
        rung.name: load_listed(REFERENCE / rung.name, rung.name, MAIN).sha256 for rung in RUNGS
    }
    return Here(rungs=RUNGS, sources=sources, lab=load_lab(LADDER_LAB), grader=grader.__version__)


def card() -> Any:
    info = gpu_environment().gpu
    assert info
    return msgspec.structs.replace(
        info,
        name="NVIDIA GeForce RTX 2080 Ti",
        compute_capability="7.5",
        multiprocessors=CARD.multiprocessors,
        sm_clock_mhz=1635,
        fp32_peak_tflops=14.2,
    )


def case(size: Size, share: float, random: Random) -> CaseResult:
    """Two runs of some repetitions, near this share of the peak."""
    tera = here().lab.problem.work(size) / 1e9
    runs = [
        [
            Pair(
                bench_ms=tera / (share * 13.4) * random.uniform(1, 1.02),
                baseline_ms=tera / 12.1 * random.uniform(1, 1.02),
            )
            for _ in range(7)
        ]
        for _ in range(2)
    ]
    watched = Watched(sm_clock_mhz=(1500, 1620), slowed=())
    work = here().lab.problem.work(size)
    speed = partial(GEMM.info().speed, work)
    timing = summarise(runs, speed, "cublasSgemm", watched=watched)
    return msgspec.structs.replace(RIGHT, size=size.dims, amount=work, timing=timing)


def explanation(size: Size) -> Explanation:
    most = Limit(resource="FP32", speed=13.4)
    bound = Bound(
        gpu=CARD.name,
        size=size.dims,
        speed=12.0,
        resource="waiting",
        limits=(most,),
        peak=13.4,
        most=most,
    )
    return Explanation(
        arch="sm_75",
        size=size.dims,
        operations=here().lab.problem.work(size),
        bytes=1,
        kernels=(),
        counts=(),
        tile=None,
        bounds=(bound,),
        advice=(),
        missing=None,
    )


@cache
def whole() -> HandedIn:
    """A file as a GPU would give it: all figures from the repetitions, by the grader's own code."""
    random = Random(1)
    results: dict[str, Result] = {}
    lab = LabRef(id=here().lab.id, sha256=here().lab.sha256)
    for index, rung in enumerate(RUNGS):
        cases = [case(each.size, 0.1 + 0.02 * index, random) for each in here().lab.performance]
        verdict = Verdict.AC
        if rung.name == LATE:
            cases[-1] = msgspec.structs.replace(
                cases[-1],
                verdict=Verdict.TLE,
                timing=None,
                message=verbatim("a launch did not end"),
            )
            verdict = Verdict.TLE
        made = make_result(rung.name, cases=tuple(cases), verdict=verdict)
        environment = gpu_environment(card())
        results[rung.name] = msgspec.structs.replace(
            made,
            lab=lab,
            created=(BEGUN + timedelta(seconds=40 * index)).isoformat(timespec="seconds"),
            explanation=explanation(here().lab.performance[-1].size),
            environment=msgspec.structs.replace(environment, grader=grader.__version__),
            submission=msgspec.structs.replace(
                made.submission, student=rung.name, sha256=here().sources[rung.name]
            ),
        )
    ladder = make_ladder(RUNGS, results, lab, GEMM.info(), grader=grader.__version__, host=None)
    return hand_in(ladder, results)


Tree = dict[str, Any]
Tampering = Callable[[Tree], object]


def result(tree: Tree, name: str = LAST) -> Any:
    return next(each for each in tree["results"] if each["submission"]["student"] == name)


def timing(tree: Tree) -> Any:
    return result(tree)["cases"][-1]["timing"]


def faster(tree: Tree) -> None:
    """All figures agree with each other; only the GPU cannot do it."""
    times = timing(tree)
    for run in times["runs"]:
        run["repetitions"] = [[own / 4, base] for own, base in run["repetitions"]]
        run["speed"] *= 4
    times["ratio"] *= 4


def twice(tree: Tree) -> None:
    cases = result(tree)["cases"]
    other = result(tree, RUNGS[-2].name)["cases"]
    cases[0]["timing"] = other[0]["timing"]


def all_at_once(tree: Tree) -> None:
    for each in tree["results"]:
        each["created"] = tree["ladder"]["created"]
        for one in each["cases"]:
            for run in one["timing"]["runs"] if one["timing"] else ():
                run["repetitions"] *= 40


TAMPERED: dict[str, tuple[Tampering, str]] = {
    "no rung": (lambda tree: tree["results"].pop(), f"^{LAST}: no result$"),
    "a rung twice": (
        lambda tree: tree["results"].append(tree["results"][-1]),
        f"^{LAST}: 2 results$",
    ),
    "another source": (
        lambda tree: result(tree)["submission"].update(sha256="0" * 64),
        f"^{LAST}: measured from another source",
    ),
    "an unknown rung": (
        lambda tree: result(tree)["submission"].update(student="99_\n" + 500 * "x"),
        r"^99_\\nx{75}: no such rung here$",
    ),
    "another lab": (
        lambda tree: result(tree)["lab"].update(sha256="0" * 64),
        f"^{LAST}: graded with another lab file$",
    ),
    "another grader": (
        lambda tree: tree["ladder"].update(grader="9.9"),
        "^grader: measured with 9.9; this one is",
    ),
    "another GPU": (
        lambda tree: result(tree)["environment"]["gpu"].update(driver="1"),
        f"^{LAST}: measured on another GPU model or driver",
    ),
    "an unknown GPU": (
        lambda tree: tree["ladder"]["gpu"].update(name="Riva 128"),
        "^gpu: Riva 128 is not in the table",
    ),
    "a wrong clock": (
        lambda tree: tree["ladder"]["gpu"].update(sm_clock_mhz=9000),
        "^gpu: highest clock 9000 MHz; .* boosts to 1545$",
    ),
    "too many multiprocessors": (
        lambda tree: tree["ladder"]["gpu"].update(multiprocessors=500),
        "^gpu: .* has 68 multiprocessors, not 500$",
    ),
    "the simulator": (lambda tree: tree["ladder"].update(gpu=None), "^gpu: none; the simulator"),
    "no such size": (
        lambda tree: result(tree)["cases"].pop(),
        f"^{LAST} at 8192: not timed$",
    ),
    "a wrong verdict": (
        lambda tree: result(tree).update(verdict="WA"),
        f"^{LAST}: WA, expected AC$",
    ),
    "no repetitions": (
        lambda tree: timing(tree)["runs"][0].update(repetitions=[]),
        f"^{LAST} at 8192: the times of its repetitions are missing$",
    ),
    "one run": (lambda tree: timing(tree)["runs"].pop(), f"^{LAST} at 8192: 1 runs, expected 2$"),
    "a time of nothing": (
        lambda tree: timing(tree)["runs"][0]["repetitions"].append([0.0, 1.0]),
        f"^{LAST} at 8192: a repetition took no time",
    ),
    "one sample more": (
        lambda tree: timing(tree).update(samples=15),
        f"^{LAST} at 8192: 14 repetitions, but 15 samples$",
    ),
    "another speed": (
        lambda tree: timing(tree)["runs"][1].update(speed=11.0),
        f"^{LAST} at 8192: run 2: its speeds are not those of its repetitions$",
    ),
    "another ratio": (
        lambda tree: timing(tree).update(ratio=1.5),
        f"^{LAST} at 8192: ratio 1.5, but 0",
    ),
    "above the peak": (faster, f"^{LAST} at 8192: [34].* TFLOPS, above the peak of 14.2"),
    "above its bound": (
        lambda tree: result(tree)["explanation"]["bounds"][0]["most"].update(speed=3.0),
        f"^{LAST} at 8192: .* TFLOPS, above its bound of 3$",
    ),
    "a clock above the highest": (
        lambda tree: timing(tree)["watched"].update(sm_clock_mhz=[1500, 2100]),
        f"^{LAST} at 8192: clock from 1500 to 2100 MHz; the GPU's highest is 1635$",
    ),
    "a clock backwards": (
        lambda tree: timing(tree)["watched"].update(sm_clock_mhz=[1620, 1500]),
        "clock from 1620 to 1500",
    ),
    "copied": (twice, f"^{LAST} at 1024: the same repetitions as {RUNGS[-2].name} at 1024$"),
    "in the future": (
        lambda tree: result(tree).update(created="2031-01-01T00:00:00+00:00"),
        f"^{LAST}: graded on 2031-01-01, in the future$",
    ),
    "no date": (
        lambda tree: result(tree).update(created="0001-01-01T00:00:00+14:00"),
        f"^{LAST}: 0001-.* is no date of a measurement$",
    ),
    "too soon": (all_at_once, r"^dates: \d+ s of measurements within 0 s on one GPU$"),
    "another table": (
        lambda tree: tree["ladder"]["steps"][-1]["speeds"][-1].update(rate=13.0),
        f"^{LAST}: the document's figures are not those of its result$",
    ),
    "no table": (
        lambda tree: tree["ladder"]["steps"].pop(),
        f"^{LAST}: not in the document's table$",
    ),
}


def written(tmp_path: Path, tree: object) -> Path:
    file = tmp_path / "handed.json"
    file.write_bytes(msgspec.json.encode(tree))
    return file


def tree() -> Any:
    return msgspec.json.decode(msgspec.json.encode(whole()))


def check(file: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    status = cli.main(["ladder", str(REFERENCE), "--check", str(file)])
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return status, [*said.out.splitlines(), *said.err.splitlines()]


def test_a_whole_file_is_believed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, lines = check(written(tmp_path, whole()), capsys)

    assert status == 0, lines
    assert any(f"whole and plausible: {len(RUNGS)} rungs, 2026-11-22" in line for line in lines)


def test_a_file_that_was_tampered_with_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = tree()
    faster(changed)
    file = written(tmp_path, changed)

    status, lines = check(file, capsys)

    assert status == 1
    assert any("above the peak of 14.2" in line for line in lines)
    assert all(line.startswith(f"{file}: {LAST}") for line in lines), lines


@pytest.mark.parametrize("name", TAMPERED)
def test_what_gives_a_file_away(name: str) -> None:

    tamper, expected = TAMPERED[name]
    changed = tree()
    tamper(changed)

    sent = msgspec.convert(changed, HandedIn)
    found = complaints(sent, here(), BEGUN + timedelta(days=1))

    assert complaints(whole(), here(), BEGUN + timedelta(days=1)) == ()
    assert any(re.search(expected, line) for line in found), found
    assert all(line.isprintable() for line in found)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"schema": "sgemm-grader/ladder", "version": 1}',
        b'{"schema": "sgemm-grader/handed-in-ladder", "version": 99}',
        b'{"schema": "sgemm-grader/handed-in-ladder", "version": 1, "ladder": 3}',
    ],
    ids=["empty", "cut off", "not text", "deep", "another kind", "newer", "damaged"],
)
def test_what_is_no_such_file_gets_one_line(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "handed.json"
    file.write_bytes(content)

    status, lines = check(file, capsys)

    assert status == 3
    assert len(lines) == 1 and "handed.json" in lines[0], lines


def test_a_missing_file_gets_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, lines = check(tmp_path / "none.json", capsys)

    assert status == 3
    assert len(lines) == 1 and "cannot be read" in lines[0]


def test_only_a_gpu_can_hand_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["ladder", str(REFERENCE), "--device", "cpu", "--send", str(tmp_path / "x.json")]

    assert cli.main([*words, "--out", str(tmp_path)]) == 2
    assert "--send: only a ladder that was measured on a GPU" in capsys.readouterr().err


ODD_VALUES = (
    0,
    -1,
    1,
    2**40,
    2**63,
    1e308,
    5e-324,
    -0.0,
    "",
    "x",
    "0001-01-01T00:00:00+14:00",
    None,
    [],
)


def leaves(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where values stand in a document: lists only by their ends."""
    if isinstance(node, dict):
        return [found for key in node for found in leaves(node[key], (*path, key))]
    if isinstance(node, list) and node:
        ends = {0, len(node) - 1}
        return [path, *(found for index in ends for found in leaves(node[index], (*path, index)))]
    return [path]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_no_value_makes_the_check_fail(seed: int) -> None:
    """Whatever stands in one place: a damaged document, or a list of complaints."""
    random = Random(seed)
    places = leaves(tree())
    read = 0
    for _ in range(60 if seed == 0 else 400):
        changed = tree()
        *path, last = random.choice(places)
        node = changed
        for step in path:
            node = node[step]
        node[last] = random.choice(ODD_VALUES)
        try:
            sent = msgspec.convert(changed, HandedIn)
        except msgspec.ValidationError:
            continue
        read += 1
        assert all(line.isprintable() for line in complaints(sent, here(), BEGUN))
    assert read > 5
