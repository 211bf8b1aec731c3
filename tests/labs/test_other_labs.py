"""The other labs that ship: sums, FP16 products, row-major matrices; their rungs are right."""

from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pytest

from grader.base import gpus
from grader.base.records import Verdict
from grader.judge.pipeline import grade
from grader.judge.program import GradingContext, prepare
from grader.labs.lab import DEFAULT_LAB, Lab, find_lab, load_lab, shipped_labs
from grader.labs.submission import load_submission
from grader.model.records import Explanation
from grader.problems.comparison import check
from grader.problems.histogram.histogram import Histogram
from grader.problems.inputs import KEY_BYTES, Floats, make_inputs
from grader.problems.reduction.reduction import MOST, UNIT, Reduction, steps, tolerance
from grader.report.formatting import for_students
from grader.results.result import Result
from grader.run.gpu.host_check import HostInput
from grader.run.protocol import quietly
from grader.study import explain_program, grade_and_explain
from ptxsim.plan import Size
from tests.support.bench import bench
from tests.support.files import beside, table
from tests.support.places import FIXTURES, ROOT

PROBLEM = Reduction()
COUNTS = (1, 2, 3, 7, 28, 29, 1000, 4097, 1 << 16, 1 << 20)


def rungs(lab: str, which: str = "[0-9]*") -> list[Path]:
    return sorted((ROOT / "reference" / lab).glob(which))


@cache
def context(lab: str) -> GradingContext:
    return msgspec.structs.replace(bench(), lab=load_lab(find_lab(lab)))


def graded(folder: Path, name: str, **changes: object) -> Result:
    """changes: of the context that grades by the lab of this name."""
    return grade(folder, msgspec.structs.replace(context(name), **changes), quietly).result


# --- right programs -----------------------------------------------------------------------------

RUNGS = rungs("reduction")
RIGHT = {
    "sgemm-row": rungs("sgemm-row"),
    "hgemm": [*rungs("hgemm", "0[0-7]_*"), ROOT / "starters" / "hgemm"],
    # Of those that are alike, the last: rungs 4 and 8 are in 9, which is in 10, and 6 is in 7.
    "sgemm-tensor": [*rungs("sgemm-tensor", "0[357]_*"), *rungs("sgemm-tensor", "10_*")],
    "reduction": [
        *(*RUNGS, ROOT / "starters" / "reduction", ROOT / "examples" / "reduction" / "alice")
    ],
}
# Of the others that ask for a kernel: all rungs, and the starter. What lies between is for the
# nightly run.
OTHERS = {
    name: [*found, ROOT / "starters" / name]
    for name, path in shipped_labs().items()
    if name not in RIGHT and name != DEFAULT_LAB.stem and (found := rungs(name))
    if load_lab(path).program is None
}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("lab", "folder"),
    [
        pytest.param(
            *(lab, folder),
            id=f"{lab}-{folder.name}",
            marks=[pytest.mark.nightly] if folder in OTHERS.get(lab, ())[:-2] else [],
        )
        for lab, folders in (RIGHT | OTHERS).items()
        for folder in folders
    ],
)
def test_right_programs_pass_without_a_finding(lab: str, folder: Path) -> None:
    result = graded(folder, lab)

    assert result.verdict is Verdict.AC, (result.error, result.cases, result.findings)
    assert for_students(result.findings) == ()  # wgmma has no second build


def inputs(n: int) -> Floats:
    """Always the same: once in thousands, sums of FP16 values are right by chance."""
    (values,) = make_inputs(PROBLEM.operands(Size.of(n=n)), [bytes(range(KEY_BYTES))])
    return values


def wrong(n: int, values: Floats, total: float) -> bool:
    found = check(PROBLEM, Size.of(n=n), [values], [np.array([total], np.float32)])
    return found.error.wrong > 0


# --- the criterion ------------------------------------------------------------------------------


@pytest.mark.parametrize("n", COUNTS)
def test_every_order_of_summation_is_exact(n: int) -> None:
    values = inputs(n)
    shuffled = np.random.default_rng(n).permutation(values)
    padded = np.pad(values, (0, -n % 64)).reshape(-1, 64)
    strided = np.add.accumulate(np.add.accumulate(padded, dtype=np.float32)[-1], dtype=np.float32)
    totals = [
        *(np.add.accumulate(each, dtype=np.float32)[-1] for each in (values, values[::-1])),
        *(np.add.accumulate(shuffled, dtype=np.float32)[-1], strided[-1]),
        values.sum(dtype=np.float32),
    ]

    assert [float(total) for total in totals] == [float(values.sum(dtype=np.float64))] * 5
    assert not any(wrong(n, values, total) for total in totals)


@pytest.mark.parametrize("n", COUNTS)
def test_anything_less_is_wrong(n: int) -> None:
    values = inputs(n)
    total = float(values.sum(dtype=np.float64))
    smallest = float(np.abs(values).min())
    assert smallest >= UNIT / 2 > float(np.finfo(np.float16).max)  # FP16 overflows

    assert wrong(n, values, total - float(values[-1]))
    assert wrong(n, values, total + float(values[0]))
    assert wrong(n, values, total + UNIT * 2 * tolerance(n))
    assert wrong(n, values, float("nan")) and wrong(n, values, float("inf"))
    if n <= 1 << 20:
        halves = (values / np.float32(UNIT)).astype(np.float16).astype(np.float64) * UNIT
        assert wrong(n, values, float(halves.sum()))


def test_partial_sums_fit_a_float_up_to_the_largest_n() -> None:
    for n in (*COUNTS, 1 << 24, (1 << 28) - 1, MOST):
        kind = steps(n)
        step = 2.0**kind.exponent
        assert tolerance(n) == step / UNIT / 2
        assert min(8 * n**0.5, 1.5 * n) * UNIT <= 2**24 * step
        assert kind.least * step == UNIT / 2 and (1 << kind.bits) * step == UNIT
    assert 100 * UNIT * tolerance(MOST) <= UNIT / 2  # what one element less costs


def test_a_forgotten_tail_of_a_histogram_is_named() -> None:
    """Counts are linear in no operand, so nothing measures what they hold."""
    problem, size = Histogram(), Size.of(n=1003)
    (keys,) = make_inputs(problem.operands(size))
    counts = np.bincount(keys[:1000], minlength=256).astype(np.uint32)
    found = check(problem, size, [keys], [counts])

    assert "the last 3 of n = 1003 elements are missing" in str(found.message)


# --- submissions --------------------------------------------------------------------------------


def test_one_element_needs_no_kernel() -> None:
    lab = context("reduction").lab
    lab = msgspec.structs.replace(lab, cpu=lab.cpu[:2])
    result = graded(FIXTURES / "reduction" / "one_element_copied", "reduction", lab=lab)

    assert result.verdict is Verdict.AC, (result.error, result.cases)
    assert [case.kernels for case in result.cases] == [0, 1]


# --- the report ---------------------------------------------------------------------------------

NEXT = dict(table(__file__, "next.txt"))


def explained(folder: Path) -> Explanation:
    ready = prepare(
        load_submission(folder, "reduction.cu"), [Size.of(n=MOST)], context("reduction"), "sm_90"
    )
    return explain_program(ready, gpus.find("H200"))


@pytest.mark.sampled
@pytest.mark.parametrize(
    "rung", [*RUNGS, ROOT / "starters" / "reduction"], ids=lambda rung: rung.name
)
def test_advice_leads_from_rung_to_rung(rung: Path) -> None:
    why = explained(rung)
    idea = rung.name[3:] if rung in RUNGS else rung.name

    assert why.missing is None
    first = why.advice[0] if why.advice else None
    assert (first.idea if first else None) == NEXT.get(idea), why.advice
    if first:
        assert first.rung and first.rung.startswith("reduction/") and first.line
    if idea == "interleaved":
        counts = why.counts[0]
        assert counts.splits
        branch = counts.splits[0]
        text = (rung / "reduction.cu").read_text().splitlines()
        assert branch.line and "% (2 * s) == 0" in text[branch.line - 1]
        # Steps 1 to 16 split all eight warps; 32, 64 and 128 leave lane 0 of four, two and one.
        assert 8 * branch.splits == branch.reached / 8 * (5 * 8 + 4 + 2 + 1)
        assert 0.2 < branch.lost / counts.instructions < 0.4


BADLY = table(__file__, "badly.txt")


@pytest.mark.parametrize(("rule", "threads", "words", "place", "end", "said"), BADLY)
def test_a_sum_is_told_in_its_own_terms_what_it_does_badly(
    rule: str, threads: str, words: str, place: str, end: str, said: str, tmp_path: Path
) -> None:
    holes = {"threads": threads, "words": words, "place": place, "end": end}
    (tmp_path / "reduction.cu").write_text(beside(__file__, "reduction.cu.in", **holes))
    advice = {each.rule: each for each in explained(tmp_path).advice}

    assert (rule in advice) == bool(said)
    assert advice.keys().isdisjoint({row[0] for row in BADLY} - {rule})
    for part in said.split("; ") if said else ():
        assert part in str(advice[rule].message)
    assert not any("FFMA" in str(each.message) for each in advice.values())


# --- FP32 products of parts


def test_tf32_is_no_fp32_on_tensor_cores() -> None:
    result = graded(rungs("sgemm-tensor", "01_*")[0], "sgemm-tensor")

    assert result.verdict is Verdict.WA
    assert all(case.verdict is not Verdict.AC for case in result.cases)
    h200 = gpus.find("H200")
    assert h200 and result.problem.arithmetic == "f16.f32/3"
    assert h200.peak_tflops("f16.f32/3") == h200.peak_tflops("f16.f32") / 3


# --- FP16 products


def changed_lab(place: Path, old: str, new: str) -> Lab:
    (place / "lab.yaml").write_text(find_lab("hgemm").read_text().replace(old, new))
    return load_lab(place / "lab.yaml")


@pytest.mark.sampled
def test_sums_in_fp16_are_right_where_the_lab_says_so(tmp_path: Path) -> None:
    lab = changed_lab(tmp_path, "accumulate: f32 ", "accumulate: f16 ")
    assert graded(FIXTURES / "hgemm" / "sums_in_fp16", "hgemm", lab=lab).verdict is Verdict.AC
    dropped = graded(FIXTURES / "hgemm" / "dropped_terms", "hgemm", lab=lab)
    assert dropped.verdict is Verdict.WA
    assert any("lacks p = 64 … 66" in str(each.message) for each in dropped.cases)


@pytest.mark.sampled
def test_bf16_is_a_type_of_the_same_problem(tmp_path: Path) -> None:
    folder = tmp_path / "ada"
    folder.mkdir()
    source = (ROOT / "reference" / "hgemm" / "07_rasterised" / "hgemm.cu").read_text()
    for old, new in (
        ("f32.f16.f16.f32", "f32.bf16.bf16.f32"),
        ("__half2", "__nv_bfloat162"),
        ("__half", "__nv_bfloat16"),
        ("__float2half", "__float2bfloat16"),
        ("__floats2half2_rn", "__floats2bfloat162_rn"),
    ):
        source = source.replace(old, new)
    (folder / "hgemm.cu").write_text(source)
    result = graded(folder, "hgemm", lab=changed_lab(tmp_path, "type: f16 ", "type: bf16 "))
    assert result.verdict is Verdict.AC, result.error
    assert "C = A·B in BF16, sums in FP32" in result.problem.title


@pytest.mark.sampled
def test_a_program_for_another_type_is_told_which_are_asked_for(tmp_path: Path) -> None:
    source = (ROOT / "starter" / "sgemm.cu").read_text()
    (tmp_path / "hgemm.cu").write_text(source)
    result = graded(tmp_path, "hgemm")
    assert result.verdict is Verdict.FE
    asked = "run_custom<__half> or run_custom<cute::half_t> is not defined in hgemm.cu"
    assert asked in str(result.error)


def test_the_cpu_sizes_show_sums_in_fp16_and_every_edge() -> None:
    sizes = [case.size for case in context("hgemm").lab.cpu]
    assert any(size["k"] > 512 for size in sizes)
    assert Size.of(m=17, n=130, k=67) in sizes


# --- row-major matrices


@pytest.mark.sampled
def test_the_starter_is_right_and_hears_about_its_loads() -> None:
    folder = ROOT / "starters" / "sgemm-row"
    result = grade_and_explain(folder, context("sgemm-row"), quietly).result
    assert result.verdict is Verdict.AC
    assert result.explanation
    first = str(result.explanation.advice[0].message)
    assert "a warp's load touches" in first and "lanes that read neighbours in memory" in first


@pytest.mark.sampled
def test_code_for_the_other_layout_is_told_so() -> None:
    result = graded(ROOT / "starter", "sgemm-row")
    assert result.verdict is Verdict.WA
    words = "B was read as if column-major: B is row-major, B[p*n + j]; C came out transposed"
    assert any(words in str(case.message) for case in result.cases)


# --- histograms


@pytest.mark.sampled
def test_whole_numbers_added_in_shared_memory_do_not_wait_for_one_another() -> None:
    folder = ROOT / "reference" / "histogram" / "03_wide"
    result = grade_and_explain(folder, context("histogram"), quietly).result
    assert result.explanation
    limits = {each.resource for each in result.explanation.bounds}
    assert limits == {"shared memory", "DRAM"}  # an H200 reaches half of DRAM's bandwidth


def test_the_host_counts_all_keys_again() -> None:
    for lab, inputs in (("histogram", "skewed"), ("histogram-ints", "equal")):
        problem, size = context(lab).lab.problem, Size.of(n=100_001, inputs=inputs)
        (keys, counts), key = problem.operands(size), bytes(range(KEY_BYTES))
        (drawn,) = make_inputs((keys, counts), [key])
        want = np.bincount(drawn, minlength=counts.count)
        places = np.arange(counts.count)
        found = problem.recomputed(size, [HostInput(key, keys)], [places])
        assert found and (found.outputs[0].want == want).all() and want.sum() == size["n"]
        assert want.max() > 0.9 * size["n"] / (3 if inputs == "skewed" else 1)
