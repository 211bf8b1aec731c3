"""Real builds of one kernel with several values of its macros."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from grader.base.errors import LabError
from grader.base.language import language
from grader.base.records import Verdict
from grader.cli.entry import main
from grader.judge import program
from grader.judge.scoring import measures
from grader.labs.lab import load_lab
from grader.labs.submission import Submission, load_submission
from grader.run.protocol import quietly
from grader.study import sweep_render as render
from grader.study.sweep import (
    Estimate,
    MeasuredPoint,
    Point,
    Sweep,
    run_sweep,
    sweepable,
    variants_of,
)
from grader.study.versions import MainKernel
from ptxsim.plan import Size
from ptxsim.text import phrase, verbatim
from tests.support.bench import bench
from tests.support.catalogues import assert_chinese
from tests.support.commands import hand_in
from tests.support.files import beside, table, values
from tests.support.pages import drawn
from tests.support.product import GEMM, MAIN

SOURCE = beside(__file__, "tiled.cu")
SHOWN = render.SweepFacts(student="zoe", problem=GEMM.info(), arch="sm_80", card="A100 80GB PCIe")


def submission(folder: Path) -> Submission:
    return load_submission(hand_in(folder / "zoe", SOURCE), MAIN)


def swept(
    folder: Path, values: Mapping[str, tuple[str, ...]], *edges: int
) -> tuple[tuple[Point, ...], list[bool]]:
    """The points, and for each whether it was stored before."""
    stored: list[bool] = []
    sizes = tuple(Size.of(m=n, n=n, k=n) for n in edges)
    sweep = Sweep(submission=submission(folder), variants=variants_of(values), sizes=sizes)
    out, found = folder / "out", lambda _point, known: stored.append(known)
    return run_sweep(sweep, bench(), out, None, quietly, found=found), stored


@pytest.mark.slow
def test_every_variant_is_built_checked_and_bounded_and_a_sweep_resumes(tmp_path: Path) -> None:
    points, stored = swept(tmp_path, {"T": ("8", "16"), "EXTRA": ("1", "2", "20000")}, 2048)
    by_name = {render.defines_name(point): point for point in points}

    assert stored == [False] * 6
    small, large = by_name["T=8 EXTRA=1"], by_name["T=16 EXTRA=1"]
    assert small.kernel and large.kernel and not small.dropped and not large.dropped
    assert (small.kernel.tile, large.kernel.tile) == ("8×8", "16×16")
    assert (small.kernel.shared_bytes, large.kernel.shared_bytes) == (576, 2176)
    speeds = [render.value(point, SHOWN) for point in (small, large)]
    assert speeds[0] and speeds[1] and speeds[0] < speeds[1]
    assert by_name["T=8 EXTRA=2"].verdict is Verdict.WA
    assert "wrong answer: 1×1×1" in str(by_name["T=8 EXTRA=2"].dropped)
    needs = "it needs 80,576 bytes of shared memory; a block can declare 49,152"
    assert str(by_name["T=8 EXTRA=20000"].dropped) == needs

    again, stored = swept(tmp_path, {"T": ("8", "16"), "EXTRA": ("1",)}, 2048)
    assert stored == [True, True] and list(again) == [small, large]
    (best,) = render.best(points, SHOWN)
    assert best.defines == ("T=16", "EXTRA=1")
    (drawn,) = render.maps(points, SHOWN)
    assert drawn.image.count('class="own"') == 2 and drawn.image.count('class="frame"') == 4
    said = [str(each) for each in render.dropped(points)]
    assert f"dropped: T=8 EXTRA=20000: {needs}" in said
    shown = render.html(points, SHOWN, language("zh_CN"))
    assert "T=16 EXTRA=1" in shown and "80,576" in shown


def test_the_sizes_of_a_variant_are_recorded_and_explained_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded: list[int] = []
    record = program.record_plans

    def counted(*given: Any, **named: Any) -> Any:
        recorded.append(len(given[3]))
        return record(*given, **named)

    monkeypatch.setattr(program, "record_plans", counted)
    points, _ = swept(tmp_path, {"T": ("8",)}, 64, 128, 192)
    assert all(point.estimates for point in points)
    assert recorded == [len(bench().lab.cpu) + 3, 2]


def timed(edge: int, speed: float, *defines: str) -> Point:
    return Point(
        schema="",
        version=1,
        defines=defines,
        size={"m": edge, "n": edge, "k": edge},
        verdict=Verdict.AC,
        dropped=render.NOTHING,
        gpu=None,
        kernel=None,
        measured=MeasuredPoint(speed=speed, baseline=50, ratio=speed / 50, ratio_ci=(0.5, 0.6)),
        estimates=(),
    )


@pytest.mark.parametrize(("speeds", "said"), values(__file__, "told_apart.txt"))
def test_what_the_model_cannot_tell_apart_has_no_best(speeds: tuple[float, ...], said: str) -> None:
    for measured in (False, True):
        points = [timed(1024, speed, f"T={each}") for each, speed in enumerate(speeds)]
        if not measured:
            points = [expected(each) for each in points]
        found = render.markdown(points, SHOWN)
        assert ("Best at 1024: T=0\n" if measured else said) in found
        assert ("Best" in found) == (measured or "Best" in said)


def expected(point: Point) -> Point:
    """The same speed, as the model expects it."""
    assert point.measured
    each = Estimate(gpu=SHOWN.card or "", speed=point.measured.speed, most=50, resource="issue")
    return msgspec.structs.replace(point, measured=None, estimates=(each,))


def dropped(point: Point) -> Point:
    why = phrase("not timed")
    return msgspec.structs.replace(point, verdict=Verdict.CE, dropped=why, measured=None)


@pytest.mark.parametrize("defines", [(), ("T=8",)], ids=["sizes", "a macro"])
def test_a_sweep_of_which_nothing_is_left_says_so(defines: tuple[str, ...]) -> None:
    points = [dropped(timed(edge, 20, *defines)) for edge in (1024, 2048)]
    shown = msgspec.structs.replace(SHOWN, card=None)
    page = render.html(points, shown)
    for text in (drawn(render.terminal(points, shown), 200), render.markdown(points, shown), page):
        assert "Nothing is left to compare: every point was dropped." in text
        assert "not timed" in text
        assert "waits on" not in text and "registers" not in text.lower()
    assert render.picture(points, shown) is None and "<table" not in page
    some = [*points, timed(4096, 20, *defines)]
    assert "Nothing is left" not in render.markdown(some, shown)


def test_points_that_know_no_such_size_or_gpu_stop_no_sweep(tmp_path: Path) -> None:
    """A sweep gives none."""
    path = tmp_path / "lab.yaml"
    path.write_text(
        "id: timed\ncorrectness: [[1, 1, 1]]\nperformance: [{mnk: [64, 64, 64]}]\n"
        "cpu: [[1, 1, 1]]\n"
        "scoring:\n  policy: curve\n  measure: ms\n  pieces: [{name: only, points: 100}]\n"
        "  milliseconds: [{gpu: NVIDIA H200, size: [64, 64, 64], at: [2, 1]}]\n"
    )
    lab = load_lab(path)
    with pytest.raises(LabError, match="none for NVIDIA A100"):
        measures(lab, "NVIDIA A100", ())
    assert set(measures(sweepable(lab), "NVIDIA A100", ())) == {each.id for each in lab.timed}


def test_a_table_over_sizes_with_the_ratio_to_the_baseline() -> None:
    points = [timed(1024, 20), timed(1536, 25), timed(2048, 30)]
    shown = msgspec.structs.replace(SHOWN, card=None)
    table = render.markdown(points, shown)

    assert table.startswith("| size | TFLOPS | cuBLAS | ratio |")
    assert "| 1536 | 25 | 50 | 50.0 % |" in table
    curve = render.curve(points, shown)
    assert curve is not None and "1536: 25" in curve and curve.count("<polyline") == 2
    chinese = render.curve(points, shown, language("zh_CN"))
    assert chinese is not None and "灰线：cuBLAS" in chinese


def test_a_second_sweep_keeps_the_page_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is repeated replaces its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("grader.cli.sweep_command.run_sweep", lambda *_, **__: (timed(64, 20),))
    folder, sha256 = submission(tmp_path).folder, submission(tmp_path).sha256
    for words in ("--sizes=64", "--sizes=64,128", "--define=T=8", "--define=T=8,16", "--sizes=64"):
        assert main(["sweep", str(folder), "--device", "cpu", words]) == 0
    names = sorted(each.name for each in Path("results", "sgemm", "zoe").iterdir())
    begin = f"{sha256[:12]}-cpu-sweep-"
    assert len(names) == 4 and all(name.startswith(begin) for name in names)
    assert sum(name.startswith(f"{begin}T-") for name in names) == 2


def test_eighty_columns_cut_no_figure() -> None:
    """Lines break between words, and all of the width is used."""
    kernel = MainKernel(
        name="k",
        registers=128,
        shared_bytes=16384,
        spill_bytes=0,
        block="16×16",
        tile="128×128",
        resident=verbatim("32 of 64 (registers)"),
    )
    point = expected(timed(1024, 23.456, "BM=128", "BN=128", "TM=8"))
    point = msgspec.structs.replace(point, kernel=kernel)
    narrow, wide = (drawn(render.terminal([point], SHOWN), width) for width in (80, 200))
    lines = narrow.split("Nothing was timed")[0].splitlines()
    assert not any("…" in line for line in lines) and max(map(len, lines)) == 80
    assert "BM=128 BN=128 TM=8  1024 " in wide and " 32 of 64 (registers)" in wide


@pytest.mark.parametrize(("option", "words"), table(__file__, "bad_options.txt"))
def test_bad_input_gets_one_line(
    option: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = submission(tmp_path).folder
    (folder / MAIN).write_text(SOURCE.replace("#define T 8", "#define T 8\nconst int sum = 1;"))
    if "sum" not in option:
        submission(tmp_path)

    assert main(["sweep", str(folder), "--device", "cpu", option]) == 2
    said = capsys.readouterr().err
    assert words in " ".join(said.split()) and "Traceback" not in said
    assert main(["sweep", str(folder), "--device", "cpu", option, "--language", "zh"]) == 2
    assert_chinese(capsys.readouterr().err)


def test_ranges_lists_and_odd_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Asked for so many that nothing is built: the message tells how many points there are."""
    folder = submission(tmp_path).folder
    values = ",".join(map(str, range(1, 201)))
    chosen = ["--sizes", "512,1023:4095:1024,100x200x300", f"--define=T={values}"]

    assert main(["sweep", str(folder), "--device", "cpu", *chosen]) == 2
    assert "1200 points; at most 1024" in capsys.readouterr().err
