"""Grades on a real GPU: what only a GPU can show. Skipped, with the reason, where there is none."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks import timeline
from grader.base.card_figures import CardFigures
from grader.base.finding import Kind
from grader.base.gpus import capability_of, standing_for
from grader.base.records import Verdict, decode, size_text
from grader.judge.program import GradingContext
from grader.labs.lab import Case, Lab, find_lab, load_lab, shipped_labs
from grader.report.curve import next_sentence
from grader.report.formatting import score_block
from grader.results import store
from grader.results.case import Timing
from grader.results.entries import stored_profile
from grader.results.ladders import stored_ladders
from grader.results.result import Result
from grader.run.probe import first_gpu_arch, gpu_names
from grader.run.protocol import quietly
from grader.study import grade_and_explain
from ptxsim.plan import Size
from tests.support.bench import bench
from tests.support.commands import STARTER, hand_in, run
from tests.support.commands import grade as command
from tests.support.corpus import Fixture, cheats, fixtures
from tests.support.files import beside
from tests.support.places import ALICE, CHEATS, HONEST, ROOT
from tests.support.swizzle import swizzle

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(first_gpu_arch() is None, reason="no NVIDIA GPU here"),
    pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed"),
]


def lab(extent: int = 1024) -> Lab:
    """The default lab with one smaller size to time, and few for the simulator."""
    default = load_lab()
    case = Case(id="performance-0", size=Size.of(m=extent, n=extent, k=extent))
    limits = msgspec.structs.replace(default.limits, launch_s=2)
    return msgspec.structs.replace(default, performance=(case,), cpu=default.cpu[:3], limits=limits)


def graded(folder: Path, rules: Lab | None = None) -> Result:
    shared = bench()
    tools = GradingContext(
        lab=rules or lab(),
        toolchain=shared.toolchain,
        sandbox=shared.sandbox,
        gpu_arch=first_gpu_arch(),
    )
    return grade_and_explain(folder, tools, quietly).result


def timed(result: Result) -> Timing:
    """Of the one size that was timed."""
    (timing,) = [case.timing for case in result.cases if case.timing]
    return timing


def said(result: Result) -> str:
    return "\n".join(str(case.message) for case in result.cases)


def findings(result: Result) -> set[str]:
    return {finding.kind for finding in result.findings}


def test_a_good_kernel_is_measured_and_scored() -> None:
    result = graded(ALICE)
    assert result.verdict is Verdict.AC
    assert result.environment.device == "gpu"
    assert result.environment.gpu is not None
    timing = timed(result)
    assert len(timing.runs) == 3
    assert timing.ratio_ci[0] <= timing.ratio <= timing.ratio_ci[1]
    assert timing.baseline is not None
    assert result.score is not None
    assert 5 < result.score.total < 100


def needs(architecture: str) -> None:
    """Skips what an older GPU than this one is not for."""
    here = first_gpu_arch()
    assert here is not None
    if capability_of(here) < capability_of(architecture):
        pytest.skip(f"needs a GPU of {architecture}")


# Other labs that count bytes, of which each has rungs, a starter and fixtures.
MOVING = [
    name
    for name, path in shipped_labs().items()
    if load_lab(path).program is None and load_lab(path).problem.unit.of == "bytes"
]
OF_THEM = [each for name in MOVING for each in fixtures(name, f"{name}.cu")]


@pytest.mark.parametrize(
    "want",
    [each for each in (*fixtures(), *OF_THEM) if each.gpu],
    ids=lambda want: f"{want.folder.parent.name}-{want.folder.name}",
)
def test_a_fixture_comes_to_what_it_declares(want: Fixture) -> None:
    """Right ones are replayed at their own addresses."""
    assert want.gpu is not None
    needs(want.architecture)
    kind = want.folder.parent.name
    result = graded(want.folder, few_sizes(kind) if kind in MOVING else None)
    assert want.gpu.met_by(result), (result.error, result.cases, result.findings)
    assert kind != "correct" or "relocated" not in findings(result), result.findings
    right = result.verdict is Verdict.AC
    assert right or result.score is None or result.score.total == 0


def test_elements_that_only_the_gpu_has_wrong_are_run_on_codes_there(tmp_path: Path) -> None:
    """Its build drops the last term; the simulator's, for the lab's sm_80, does not."""
    needs("90")
    naive = (ROOT / "reference" / "sgemm" / "01_naive" / "sgemm.cu").read_text()
    wrong = naive.replace("p < k; ++p", "p < k - LESS; ++p")
    assert wrong != naive
    arch = "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900"
    wrong = f"{arch}\n#define LESS 1\n#else\n#define LESS 0\n#endif\n{wrong}"
    result = graded(hand_in(tmp_path / "eve", wrong))
    assert result.verdict is Verdict.WA
    assert "holds the products p = 0 … 31 and lacks p = 32" in said(result), said(result)
    strips = [strip for case in result.cases if case.error for strip in case.error.strips]
    assert strips and all(strip.signs.endswith("-") for strip in strips)


@pytest.mark.parametrize(("of", "verdict"), [("place", Verdict.AC), ("address", Verdict.WA)])
def test_what_depends_on_the_first_shared_address_is_said(
    of: str, verdict: Verdict, tmp_path: Path
) -> None:
    needs("90")  # where shared memory does not begin at 0, as it does for the lab's sm_80
    result = graded(hand_in(tmp_path / "eve", swizzle(of)))
    assert result.verdict is verdict, (result.cases, result.findings)
    hints = " ".join(str(each.message) for each in result.findings if each.kind is Kind.HINT)
    for words in ("wrong in the simulator, too", "the bits of an address in shared memory"):
        assert (words in hints) == (verdict is Verdict.WA), hints


def test_a_programmatic_launch_costs_no_time(tmp_path: Path) -> None:
    early = next(each for each in fixtures("correct") if each.folder.name == "programmatic_launch")
    needs(early.architecture)
    text, on = (early.folder / "sgemm.cu").read_text(), "SerializationAllowed = 1"
    assert text.count(on) == 1
    (tmp_path / "sgemm.cu").write_text(text.replace(on, "SerializationAllowed = 0"))
    speeds = []
    for folder in (early.folder, tmp_path):
        result = graded(folder)
        assert result.verdict is Verdict.AC, result.cases
        speeds.append(timed(result).scored_speed)
    assert 1.02 * speeds[0] >= speeds[1], speeds


def few_sizes(name: str) -> Lab:
    """The lab with three sizes to time, once each."""
    base = load_lab(find_lab(name))
    scoring = msgspec.structs.replace(base.scoring, runs=1)
    return msgspec.structs.replace(
        base, performance=base.performance[:3], cpu=base.cpu[:3], scoring=scoring
    )


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        pytest.param(name, folder, id=f"{name}-{folder.name}")
        for name in MOVING
        for folder in (*sorted(ROOT.glob(f"reference/{name}/[0-9]*")), ROOT / "starters" / name)
    ],
)
def test_what_moves_bytes_is_timed(name: str, folder: Path) -> None:
    result = graded(folder, few_sizes(name))
    assert result.verdict is Verdict.AC, (result.cases, result.findings)
    assert sum(case.timing is not None for case in result.cases) == 3
    assert result.score and result.score.total > 0


def test_many_types_scalars_and_what_is_changed_in_place() -> None:
    data = ROOT / "tests" / "problems" / "data"
    base = load_lab(data / "mixed.yaml")
    scoring = msgspec.structs.replace(base.scoring, runs=1)
    result = graded(data / "right", msgspec.structs.replace(base, scoring=scoring))
    assert result.verdict is Verdict.AC, (result.error, result.cases, result.findings)
    sizes = {str(Size(dims=case.size)) for case in result.cases if case.timing}
    assert sizes == {"n = 1000", "n = 1000, skewed"}


@cache
def honest_score() -> float:
    score = graded(HONEST, quick()).score
    assert score is not None
    return score.total


def quick() -> Lab:
    """Six sizes to verify, one to time, once."""
    base = lab()
    limits = msgspec.structs.replace(base.limits, compile_s=10, record_s=5, memory_mb=2048)
    scoring = msgspec.structs.replace(base.scoring, runs=1)
    return msgspec.structs.replace(
        base, correctness=base.correctness[:6], limits=limits, scoring=scoring
    )


@pytest.mark.parametrize("cheat", cheats(), ids=lambda cheat: cheat.folder.name)
def test_a_cheat_comes_to_what_it_declares(cheat: Fixture) -> None:
    assert cheat.gpu is not None
    if cheat.needs_sandbox and bench().sandbox.kind == "rlimits":
        pytest.skip("stopped by a sandbox, and none works here")
    if cheat.needs_cutlass and bench().toolchain.cutlass_include is None:
        pytest.skip("needs the CUTLASS headers: pip install nvidia-cutlass")
    needs(cheat.architecture)
    result = graded(cheat.folder, quick())
    said = (result.verdict, result.error, result.cases, result.findings)
    assert cheat.gpu.met_by(result), said
    if cheat.gpu.no_gain:
        assert result.score is not None
        assert result.score.total <= honest_score() * 1.05, said
    else:
        assert result.score is None or result.score.total == 0, said


def test_two_speeds_are_in_the_document_and_the_slower_is_scored() -> None:
    result = graded(CHEATS / "slow_in_every_fifth_repetition")
    timing = timed(result)
    assert timing.modes
    assert 0.15 <= timing.modes.slow.share <= 0.25
    assert timing.modes.fast.speed > 3 * timing.modes.slow.speed
    assert timing.scored_speed == timing.modes.slow.speed
    assert "two speeds" in score_block(result)


def test_findings_decide_when_the_lab_says_so() -> None:
    strict = lab()
    rules = msgspec.structs.replace(strict.rules, findings="fail")
    result = graded(CHEATS / "skips_when_right", msgspec.structs.replace(strict, rules=rules))
    assert result.verdict is Verdict.WA  # it reads C before anything was written there


def test_a_block_cannot_have_more_shared_memory_than_there_is(tmp_path: Path) -> None:
    text = (CHEATS / "skips_when_right" / "sgemm.cu").read_text()
    kernel = "  volatile __shared__ float some[8192];\n  some[threadIdx.x] = A[0];\n"
    text = text.replace("int k) {\n  const int i", "int k) {\n" + kernel + "  const int i")
    text = text.replace(
        "  gemm<<<",
        "  cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, 220 << 10);\n"
        "  gemm<<<",
    )
    text = text.replace("dim3(32, 8)>>>", "dim3(32, 8), 220 << 10>>>")
    (tmp_path / "sgemm.cu").write_text(text)
    result = graded(tmp_path)
    assert result.verdict is Verdict.RE, result
    assert "shared memory" in said(result)


def test_more_memory_than_the_gpu_has(tmp_path: Path) -> None:
    memory = standing_for(first_gpu_arch() or "").memory_bytes
    text = (CHEATS / "skips_when_right" / "sgemm.cu").read_text()
    text = text.replace("  gemm<<<", f"  void* all;\n  cudaMalloc(&all, {memory}ull);\n  gemm<<<")
    (tmp_path / "sgemm.cu").write_text(text)
    result = graded(tmp_path)
    assert result.verdict is Verdict.RE, result
    assert f"no room for the {memory} bytes" in said(result)


def test_who_shares_the_gpu_gets_no_low_score() -> None:
    busy = "import cupy, sys; x = cupy.ones((4096, 4096)); print(1, flush=True)\nwhile 1: x @ x"
    with subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE) as other:
        assert other.stdout
        other.stdout.readline()
        result = graded(ALICE)
        other.kill()
    assert result.verdict is Verdict.IE
    assert result.score is None
    assert "the GPU was shared" in str(result.error)


def test_two_at_once_take_turns() -> None:
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(graded, [ALICE] * 2))
    assert [result.verdict for result in both] == [Verdict.AC] * 2
    assert all(timed(result).disturbed <= 2 for result in both)


def test_in_a_class_nothing_else_happens_on_the_gpu_while_one_is_timed(tmp_path: Path) -> None:
    for student in "abc":
        shutil.copytree(ALICE, tmp_path / "class" / student)
    moments = tmp_path / "moments"
    moments.mkdir()
    words = ("class", tmp_path / "class", "--device", "gpu", "--out", tmp_path / "out")
    subprocess.run(command(*words), cwd=ROOT, env=timeline.environment(moments), check=True)
    turns = timeline.turns(timeline.happened(moments))
    assert len(turns) == 3
    assert timeline.beside_timing(turns) == []
    assert any(after.context[0] < before.cases[1] for before, after in pairwise(turns))


def test_a_crash_at_the_timed_size_leaves_smaller_ones_their_verdicts(tmp_path: Path) -> None:
    trap = '  if (m == 2048 && n == 2048) asm volatile("trap;");\n  const int i ='
    (tmp_path / "sgemm.cu").write_text(STARTER.replace("  const int i =", trap, 1))
    result = graded(tmp_path, lab(2048))
    assert result.verdict is Verdict.RE, result
    verdicts = {size_text(case.size): case.verdict for case in result.cases}
    assert verdicts["2048×2048×2048"] is Verdict.RE
    assert verdicts["1000×1000×1000"] is verdicts["1×1×1"] is Verdict.AC
    assert verdicts["4097×4097×4097"] is None  # not run


def test_the_checks_themselves() -> None:
    """In a process of its own: a context here would look like somebody else's to the graders."""
    done = run([sys.executable, "-m", "tests.whole.gpu_checks"], ROOT)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["the same inputs as on the CPU"]
    assert said["changed"] == [True, 0, 0, (1 << 64) - 1]
    assert said["freivalds, cuBLAS"] <= 0.5
    assert not said["freivalds, one element"] <= 1
    assert said["freivalds, nan"] is None
    assert said["faulty reference"].startswith("the reference itself is wrong")
    assert said["impossible"] == "RF" and said["poison differs"]
    assert said["own addresses"] == {"relocated": False, "wrong": 0}
    assert said["other addresses"] == {"relocated": True, "wrong": 0}
    assert len(said["layouts"]) == 8 and all(map(all, said["layouts"].values())), said["layouts"]
    assert said["kinds"] == []  # those that are not as the CPU makes them
    wrong = ["WA", "checks-differ"]
    lies = ("half of it", "unwritten", "written later", "other inputs")
    assert said["forged"] == {"right": ["AC"], **dict.fromkeys(lies, wrong)}
    for form in ("f16", "bf16", "f16 f16"):
        seen = said[form]
        assert seen["same inputs"] and [count for count, _ in seen["changed"]] == [0, 0]
        assert seen["freivalds"] <= 1 < seen["freivalds, another product"]
        assert "cublasGemmEx" in seen["wrong"] and set(seen["wrong"].values()) == {0}
        assert [seen["the host finds"], seen["the host finds, one element"]] == [0, 1]
        assert seen["one element"] == 1 and seen["another product"] > 200_000


def test_the_ladder_is_measured_and_says_where_a_kernel_stands(tmp_path: Path) -> None:
    rungs = tmp_path / "rungs"
    for name in ("01_naive", "13_register_4x4"):
        shutil.copytree(ROOT / "reference" / "sgemm" / name, rungs / name)
    rules = tmp_path / "lab.yaml"
    rules.write_text(
        "id: quick\ncorrectness: [[33, 65, 17]]\n"
        "performance: [{mnk: [512, 512, 512]}, {mnk: [1024, 1024, 1024]}]\n"
        "cpu: [[33, 17, 20]]\nscoring: {policy: oj, runs: 1}\n"
    )
    options = ["--device", "gpu", "--lab", "lab.yaml"]

    def grader(*words: str) -> str:
        done = run(command(*words, *options), tmp_path, timeout=600)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    grader("ladder", "rungs")
    ((measured,), complaints) = stored_ladders(tmp_path / "results")
    assert complaints == []
    assert measured.gpu
    assert [size["m"] for size in measured.sizes] == [512, 1024]
    naive, patches = measured.steps
    assert [step.verdict for step in measured.steps] == [Verdict.AC, Verdict.AC]
    assert naive.speeds[-1].ratio < patches.speeds[-1].ratio
    assert (tmp_path / "results" / "ladder" / f"{measured.gpu.name}.html").is_file()
    assert "2 of 2 are already graded" in grader("ladder", "rungs")

    shutil.copytree(ALICE, tmp_path / "alice")
    assert "On the reference ladder, " in grader("alice")


def test_a_profile_has_the_baseline_and_the_naive_kernel_beside_it(tmp_path: Path) -> None:
    shutil.copytree(ALICE, tmp_path / "alice")
    done = run(command("profile", "alice", "--size", "1024"), tmp_path, timeout=600)
    said = " ".join((done.stdout + done.stderr).split())
    for reason in ("no ncu on PATH", "ERR_NVGPUCTRPERM"):
        if reason in said:
            pytest.skip(reason)
    assert done.returncode == 0, said
    (report,) = (tmp_path / "results").rglob("*.ncu-rep")
    document = stored_profile(report.with_name(f"{report.stem}-gpu.json"))
    assert document is not None and document.report == report.name
    (size,) = document.sizes
    own, baseline, naive = size.sides
    assert [side.role for side in size.sides] == ["own", "baseline", "first"]
    assert own.milliseconds and baseline.milliseconds and naive.milliseconds
    assert own.asked and naive.asked and size.inputs < own.asked < naive.asked
    if naive.from_dram is not None:  # a slice of a GPU does not count its DRAM
        assert f"{naive.name} asks for" in said


# --- curves and hidden sizes ---------------------------------------------------------------------

SEALED = beside(__file__, "sealed.yaml")
SECRETS = ("the secret of one course", "that of the year after it")
WRONG_AT_HIDDEN = STARTER.replace("] = sum;", "] = m > 300 && m != 1024 ? 1000.0f * m + n : sum;")


def sealed(place: Path, secret: str, kernel: Path | str) -> tuple[Result, Lab, str]:
    place.mkdir()
    (place / "lab.yaml").write_text(SEALED)
    (place / "hidden.seed").write_text(secret)
    if isinstance(kernel, Path):
        shutil.copytree(kernel, place / "eve")
    else:
        hand_in(place / "eve", kernel)
    done = run(command("eve", "--lab", "lab.yaml", "--device", "gpu"), place)
    assert done.returncode in (0, 1), done.stderr
    result = store.load(next(store.stored(place / "results")))
    return result, load_lab(place / "lab.yaml"), done.stdout + done.stderr


def test_groups_and_a_curve_are_scored(tmp_path: Path) -> None:
    result, lab, printed = sealed(tmp_path / "a", SECRETS[0], ALICE)
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
        result, lab, printed = sealed(tmp_path / str(number), secret, WRONG_AT_HIDDEN)
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
        SEALED[: SEALED.index("scoring")]
        + "scoring:\n  policy: curve\n  measure: ms\n  pieces: [{name: only, points: 100}]\n"
        "  milliseconds: [{gpu: Some GPU, size: [1024, 1024, 1024], at: [9, 1]}]\n"
    )
    shutil.copytree(ALICE, tmp_path / "alice")
    done = run(command("alice", "--lab", "lab.yaml", "--device", "gpu"), tmp_path)
    assert done.returncode == 2
    assert f"the lab has times for Some GPU, none for {gpu_names()[0]}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_card_is_measured(tmp_path: Path) -> None:
    """Figures that are no shares of something, and a file that grades read."""
    done = run(command("calibrate", str(tmp_path / "card.json")), tmp_path)

    assert done.returncode == 0, done.stderr
    card = decode((tmp_path / "card.json").read_bytes(), CardFigures)
    assert card.gpu == gpu_names()[0] and 0.5 < card.fp32_share < 1.1
    assert 0.5 < card.dram_share < 1.1 and card.l2_latency < card.dram_latency
