"""Every rung of the reference ladder: accepted, without findings, headed by what it teaches."""

import re
import subprocess
from collections.abc import Iterable
from functools import cache
from itertools import takewhile
from pathlib import Path
from statistics import fmean

import pytest
from _pytest.mark import ParameterSet

from benchmarks.ladder_counts import formula_bytes, tile
from benchmarks.ladder_shipped import with_table
from benchmarks.research.ladder.candidates import kernels
from benchmarks.research.variants.variants import parse
from grader.base.records import Verdict
from grader.build.sass import disassemble
from grader.judge.pipeline import grade
from grader.judge.program import GradingContext, compile_for
from grader.labs.lab import Case
from grader.labs.submission import load_submission
from grader.model.main_loop import summarise
from grader.model.records import KernelSass, SassLoop
from grader.report.formatting import for_students
from grader.results.ladders import shipped_ladders
from grader.results.result import Result
from grader.results.rungs import find_rungs
from grader.run.protocol import quietly
from grader.study.ladder_host import run_host
from ptxsim.findings import LineCount
from ptxsim.plan import Record, Size
from tests.support import bench as benches
from tests.support.files import beside, values
from tests.support.places import REFERENCE, ROOT
from tests.support.product import MAIN

RUNGS = sorted(file.parent for file in REFERENCE.glob("*/sgemm.cu"))
SOURCES = [REFERENCE / "00_host" / "host.cpp", *(rung / "sgemm.cu" for rung in RUNGS)]
# Beside the lab's own sizes: single elements, edges one past a tile, thin shapes both ways, rows
# of A aligned and not, K over several stages and slices.
ODD = ((33, 65, 17), (130, 70, 36), (257, 129, 31), (1, 700, 3), (700, 1, 4), (68, 20, 1100))
COUNTED = Size.of(m=256, n=128, k=64)  # the largest of all, whose lines are in the result
# FFMA share of the main loop: some instructions below what nvcc 13.0 made of it.
WIDE = dict(values(__file__, "wide.txt"))
# Rungs whose operands a first kernel packs; on sm_90 bulk copies load them.
PACKED = ("28_packed_bulk", "29_reuse_order", "30_shared_tail", "32_dispatch")
# So large that rung 32 takes its other kernels, and that rung 31 sums in turns.
PACKING_PAYS = ((1100, 550, 66), (1100, 1000, 70), (256, 128, 2048), (65, 70, 4099))
MOST_BANK_WAITS = 0.25  # cycles for each FFMA, on sm_75 and sm_80
# Compiled or simulated for ten seconds and more; the last rung has what 29 and 30 teach, and a
# fixture has CuTe.
LONG = ("26_cute", "27_cute_pipelined", "29_reuse_order", "30_shared_tail", "31_one_kernel")
HEADER = ("Changed", "Why", "Tile", "Bound", "Command")


def listed(rung: Path, *, long: bool = False) -> ParameterSet:
    """CuTe's headers may be missing; the compiler takes half a minute to read them."""
    marks = [benches.needs_cutlass] if "_cute" in rung.name else []
    return pytest.param(rung, id=rung.name, marks=[*marks, *[pytest.mark.nightly] * long])


def named(*names: str) -> list[ParameterSet]:
    return [listed(REFERENCE / name) for name in names]


def nightly(*names: str) -> list[ParameterSet]:
    """Compiled or simulated for half a minute each."""
    marks = pytest.mark.nightly
    return [pytest.param(REFERENCE / name, id=name, marks=marks) for name in names]


@cache
def bench() -> GradingContext:
    shared = benches.bench()
    odd = (Case(id=f"odd-{i}", size=Size.of(m=m, n=n, k=k)) for i, (m, n, k) in enumerate(ODD))
    larger = benches.of_lab(shared, cpu=(*shared.lab.cpu, *odd))
    return benches.limited(larger, compile_s=120)  # for CuTe


def header(source: Path) -> list[str]:
    return list(takewhile(lambda line: line.startswith("//"), source.read_text().splitlines()))


def test_shipped_ladders_have_the_texts_of_the_headers() -> None:
    for ladder in shipped_ladders():
        assert ladder.gpu and ladder.sizes
        rungs = {rung.name: rung for rung in find_rungs(REFERENCE.parent / ladder.lab.id)}
        for step in ladder.steps:
            assert step.rung == rungs[step.rung.name]


def test_the_tour_has_the_table_of_the_shipped_ladder() -> None:
    last = {ladder.lab.id: ladder for ladder in shipped_ladders()}  # of several GPUs
    for ladder in last.values():
        tour = REFERENCE.parent / ladder.lab.id / "README.md"
        if tour.exists():
            assert with_table(tour.read_text(), ladder) == tour.read_text()


@pytest.mark.sampled
def test_the_compiler_unrolls_as_the_pragma_would() -> None:
    by_itself, told = (
        [(kernel.instructions, kernel.loop and kernel.loop.mix) for kernel in kernels]
        for kernels in (
            machine_code(REFERENCE / name, "sm_80")
            for name in ("08_compiler_unrolls", "09_unrolled")
        )
    )
    forbidden = machine_code(REFERENCE / "07_tile_template", "sm_80")

    assert by_itself == told
    assert all(kernel.loop and kernel.loop.unroll == 1 for kernel in forbidden)


@pytest.mark.sampled
def test_rows_that_pass_through_shared_memory_are_stored_whole() -> None:
    """Rung 20's stores at an m that is no multiple of four: fewer sectors than rung 19's."""
    case = Case(id="odd", size=Size.of(m=257, n=129, k=32))
    tools = benches.of_lab(benches.bench(), cpu=(case,))

    def stored(name: str) -> LineCount:
        lines = grade(REFERENCE / name, tools, quietly).result.lines
        return max(lines, key=lambda line: line.global_sectors)

    before, after = stored("19_warp_tile"), stored("20_shared_store")
    assert before.global_bytes == after.global_bytes == 4 * 257 * 129
    assert (before.global_sectors, after.global_sectors) == (18689, 5153)  # as the header says


def test_the_rungs_are_numbered_without_gaps() -> None:
    numbers = [int(rung.name.split("_")[0]) for rung in RUNGS]

    tour = (REFERENCE / "README.md").read_text()
    reserved = [int(number) for number in re.findall(r"^\*\*(\d+)\*\* – reserved", tour, re.M)]
    assert sorted(numbers + reserved) == list(range(1, max(numbers) + 1))


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.parent.name)
def test_header_and_length(source: Path) -> None:
    for name, text in sources(source.parent).items():
        assert len(text.splitlines()) <= 300, name
    lines = header(source)
    labels = [match[1] for line in lines if (match := re.match(r"// (\w+): ", line))]

    assert re.match(rf"// Rung {int(source.parent.name[:2])}( \(a trap\))?: .+\.$", lines[0])
    # What a GPU said stands there too where it is not what the idea promised.
    assert tuple(label for label in labels if label != "Measured") == HEADER
    assert f"reference/sgemm/{source.parent.name}" in lines[-1]
    assert all(len(line) <= 100 for line in source.read_text().splitlines())


def sources(rung: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in sorted(rung.glob("*.cu*"))}


def test_headers_of_one_name_are_one_text_beside_the_rungs_they_name() -> None:
    beside: dict[str, dict[int, str]] = {}
    for rung in RUNGS:
        number = int(rung.name[:2])
        for name, text in sources(rung).items():
            if name.endswith(".cuh"):
                beside.setdefault(name, {})[number] = text

    shared = {name: copies for name, copies in beside.items() if len(copies) > 1}
    assert "pipeline.cuh" in shared
    for name, copies in shared.items():
        (text,) = set(copies.values())
        named = re.search(r"^// The same file lies beside rungs ([^.]*)\.$", text, re.MULTILINE)
        assert named, name
        runs = re.findall(r"(\d+)(?: to (\d+))?", named[1])
        numbers = {n for first, last in runs for n in range(int(first), int(last or first) + 1)}
        assert set(copies) == numbers, name


def graded_on(arch: str, rung: Path, cases: Iterable[Case] = ()) -> Result:
    """Accepted at the lab's and further cases, without findings."""
    cases = (*bench().lab.cpu, *cases)
    asked = benches.of_lab(bench(), architectures=(arch,), cpu=cases)
    result = grade(rung, asked, quietly).result
    assert result.verdict is Verdict.AC, (result.error, result.cases)
    assert len(result.cases) == len(cases)
    assert for_students(result.findings) == ()
    return result


@pytest.mark.sampled
@pytest.mark.parametrize("rung", [listed(rung, long=rung.name in LONG) for rung in RUNGS])
def test_rung(rung: Path) -> None:
    graded_on(bench().lab.architectures[0], rung)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "rung",
    [
        *named("23_multistage", "24_rasterised", "25_split_k", "31_one_kernel"),
        *nightly("27_cute_pipelined", "30_shared_tail", "32_dispatch"),
    ],
)
def test_without_asynchronous_copies(rung: Path) -> None:
    result = graded_on("sm_75", rung, [Case(id="slices", size=Size.of(m=33, n=97, k=1031))])
    assert result.build is not None and "-arch=sm_75" in result.build.command


@pytest.mark.sampled
@pytest.mark.parametrize(
    "rung", [*named(PACKED[0], PACKED[2]), *nightly(PACKED[1], "31_one_kernel", "32_dispatch")]
)
def test_with_bulk_copies(rung: Path) -> None:
    more = (Case(id=f"{m}-{n}-{k}", size=Size.of(m=m, n=n, k=k)) for m, n, k in PACKING_PAYS)
    graded_on("sm_90", rung, more if rung.name == "32_dispatch" else ())


def machine_code(rung: Path, arch: str) -> list[KernelSass]:
    """The kernels of a rung that multiply; none spills."""
    tools = bench()
    built = compile_for(load_submission(rung, MAIN), tools, arch)
    kernels = map(summarise, disassemble(built.cubin, tools.toolchain, tools.sandbox))
    found = [kernel for kernel in kernels if kernel.loop is not None]
    assert all(kernel.local_loads == kernel.local_stores == 0 for kernel in found)
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("arch", ["sm_75", "sm_80"])
@pytest.mark.parametrize("rung", [listed(REFERENCE / name, long="_cute" in name) for name in WIDE])
def test_machine_code_of_wide_loads(rung: Path, arch: str) -> None:
    """On cards that nobody here could time: wide shared loads, no spills, mostly FFMA."""
    loops = [kernel.loop for kernel in machine_code(rung, arch) if kernel.loop is not None]
    for loop in loops:
        mix = {item.kind: item.count for item in loop.mix}
        steps = loop.ffma // 64  # along K; 16 values for each, four at a time
        assert mix["LDS.128"] == 4 * steps
        assert mix.get("LDS.32", 0) <= 3 * steps // 8  # placeholders beside cp.async, of no effect
    assert max(loop.ffma / loop.instructions for loop in loops) >= WIDE[rung.name]


def over_tiles(loop: SassLoop) -> bool:
    """Whether this is a loop over tiles, with several main loops and what stores a tile in it."""
    return loop.ffma >= 512 and loop.instructions > 3 * loop.ffma


@pytest.mark.sampled
@pytest.mark.parametrize("arch", [pytest.param("sm_75", marks=pytest.mark.nightly), "sm_80"])
@pytest.mark.parametrize("rung", [listed(rung, long="_cute" in rung.name) for rung in RUNGS])
def test_machine_code(rung: Path, arch: str) -> None:
    """On cards that nobody here could time: nothing spilled, values loaded as the header says,
    few waits for register banks."""
    said = re.search(r"TM = (?:TN = )?(\d+)(?:, TN = (\d+))?", " ".join(header(rung / "sgemm.cu")))
    tm, tn = (int(said[1]), int(said[2] or said[1])) if said else (1, 1)
    edges = tile(rung / "sgemm.cu") or (tm, tn)
    for kernel in machine_code(rung, arch):
        loop = kernel.loop
        assert loop is not None
        assert loop.bank_conflicts <= MOST_BANK_WAITS * loop.ffma
        if edges == (1, 1) or loop.accumulators != tm * tn or over_tiles(loop):
            continue  # no tiles to load from; another kernel than the one that the header describes
        loads = {item.kind: item.count for item in loop.mix if item.kind.startswith("LDS")}
        values = sum(int(kind.partition(".")[2]) // 32 * count for kind, count in loads.items())
        steps = loop.ffma // (tm * tn)
        assert 0 <= values - (tm + tn) * steps <= 3 * steps  # some read beside what they need


@pytest.mark.sampled
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.parametrize(
    "name", [*PACKED[:3], "31_one_kernel", pytest.param(PACKED[3], marks=pytest.mark.nightly)]
)
def test_machine_code_of_packed_operands(name: str, arch: str) -> None:
    """No spills anywhere; in the loops of 16 x 8 six LDS.128 for 128 FFMA, and little else."""
    loops = [kernel.loop for kernel in machine_code(REFERENCE / name, arch)]
    packed = [
        loop
        for loop in loops
        if loop and loop.accumulators == 128 and all(x.file != "small.cuh" for x in loop.lines)
    ]
    assert packed or (name, arch) == ("31_one_kernel", "sm_75")  # its tile is smaller there
    for loop in packed:
        if over_tiles(loop):
            assert name not in PACKED[:3]
            assert arch == "sm_80"
            continue
        mix = {item.kind: item.count for item in loop.mix}
        assert mix["LDS.128"] == 6 * (loop.ffma // 128)
        # Rung 31's loop, which is in rung 32 too, holds the code for lines that are not aligned.
        assert loop.ffma / loop.instructions >= (0.80 if name in PACKED[:3] else 0.72)


@pytest.mark.sampled
@pytest.mark.parametrize("rung", [listed(rung) for rung in RUNGS if 5 <= int(rung.name[:2]) <= 24])
def test_traffic_is_what_the_formula_says(rung: Path) -> None:
    edges = tile(rung / "sgemm.cu")
    lines = grade(rung, bench(), quietly).result.lines

    assert edges is not None
    assert sum(line.global_bytes for line in lines) == formula_bytes(COUNTED, edges)


def test_variants_to_be_timed_fit_the_rung(tmp_path: Path) -> None:
    rung = REFERENCE / "32_dispatch"
    listed = (ROOT / "benchmarks" / "research" / "variants" / "dispatch.txt").read_text()

    texts = [sources(variant.write(rung, tmp_path)) for variant in parse(listed)]

    assert texts[0] == sources(rung)
    assert len({tuple(text.items()) for text in texts}) == len(texts) > 1


@pytest.mark.sampled
def test_host_loops_agree_and_are_timed() -> None:
    run = run_host(REFERENCE)

    assert run is not None
    assert [loop.name for loop in run.loops] == ["plain", "restrict"]
    assert all(loop.gflops > 0.01 for loop in run.loops)


# --- the top rung's choice of a kernel, beside the measured best of its kernels


ESTIMATE = ROOT / "reference" / "sgemm" / "32_dispatch" / "estimate.cuh"
LOG = Path(__file__).parent / "data" / "h100_candidates.txt"
H100 = "{132, 232448, true, 1693}"
SHAPE = re.compile(r"(\d+)x(\d+)x(\d+): ")
# Kernel, slices, whole, sharers: what the log and the program write.
Division = tuple[str, int, int, int]


class Shape(Record):
    size: tuple[int, int, int]
    microseconds: dict[Division, float]


def measured() -> list[Shape]:
    found: list[Shape] = []
    for line in LOG.read_text().splitlines():
        if head := SHAPE.match(line):
            m, n, k = map(int, head.groups())
            found.append(Shape(size=(m, n, k), microseconds={}))
        elif line.startswith("  "):
            name, slices, whole, sharers, time = line.split()
            division = (name, int(slices), int(whole), int(sharers))
            found[-1].microseconds[division] = float(time)
    return found


def choices(sizes: list[tuple[int, int, int]], device: str, folder: Path) -> list[Division]:
    program = folder / "choice"
    source = beside(__file__, "choose.cpp", device=device)
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{ESTIMATE.parent}"]
    command += ["-x", "c++", "-", "-o", str(program)]
    subprocess.run(command, input=source, text=True, check=True)
    shapes = "".join(f"{m} {n} {k}\n" for m, n, k in sizes)
    done = subprocess.run([program], input=shapes, capture_output=True, text=True, check=True)
    names = kernels()
    found = []
    for line in done.stdout.splitlines():
        kernel, *rest = map(int, line.split())
        slices, whole, sharers = rest
        found.append((names[kernel], slices, whole, sharers))
    return found


def test_the_choice_loses_little(tmp_path: Path) -> None:
    shapes = measured()
    assert len(shapes) >= 60
    chosen = choices([each.size for each in shapes], H100, tmp_path)
    lost = {}
    for shape, division in zip(shapes, chosen, strict=True):
        assert division in shape.microseconds, f"{shape.size}: {division} was not measured"
        best = min(shape.microseconds.values())
        lost[shape.size] = shape.microseconds[division] / best - 1
    assert fmean(lost.values()) <= 0.006
    assert max(lost.values()) <= 0.092, max(lost, key=lost.__getitem__)


@pytest.mark.parametrize(("device", "families"), values(__file__, "devices.txt"))
def test_other_devices_get_only_what_they_can_run(
    device: str, families: tuple[str, ...], tmp_path: Path
) -> None:
    chosen = choices([each.size for each in measured()], device, tmp_path)
    assert any(slices > 1 for _, slices, *_ in chosen)
    assert all(name.startswith(families) for name, *_ in chosen)
