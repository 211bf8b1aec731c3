"""Our counts beside Nsight Compute's: `python -m benchmarks.counters_h200` on a GPU machine.

Every rung of the reference ladder at one size, and loads of shared memory in patterns that decide
how wide accesses are served. Prints Markdown tables. --raw FILE keeps all that ncu said; with
--from FILE our side is counted anew beside that, on any machine:

    python -m benchmarks.counters_h200 --from tests/model/data/h200_counters.json

The ladder on tensor cores, with the counters of HMMA, HGMMA, ldmatrix and TMA beside ours:

    python -m benchmarks.counters_h200 --lab hgemm --raw hgemm-counters.json
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from benchmarks.measure import ALICE, ROOT, cubes, machine, table, tools
from grader.base.errors import Rejected
from grader.build.sass import disassemble
from grader.labs.lab import DEFAULT_LAB, find_lab, load_lab
from grader.labs.submission import load_submission
from grader.model.join import count, factors
from grader.model.records import KernelCounts
from grader.results.profile import Profile
from grader.run.gpu.messages import Watching
from grader.run.probe import first_gpu_arch, gpu_names
from grader.run.simulator.device import engine_library
from grader.study.comparison import Compared, compare, total
from grader.study.profiler import profile
from ptxsim import Sampler, load_engine
from ptxsim.plan import Launch, Record

WIDE = ROOT / "benchmarks" / "bank_patterns"  # loads of shared memory by all lanes
LANES = ROOT / "benchmarks" / "lane_patterns"  # by some; cp.async
COPIES = ROOT / "benchmarks" / "copy_patterns"  # cp.async of 16 bytes, with prefetches
SECONDS = 300.0  # of the simulator for one plan: rung 3 is one block that does everything
EVERY = 1 << 40  # blocks
WAVES = ("shared load wavefronts", "of them bank conflicts", "cp.async wavefronts")


class Profiled(Record):
    """What ncu said of one submission."""

    folder: str  # in the repository
    sha256: str  # of its sources
    launches: tuple[Profile, ...]


class Raw(Record):
    machine: str  # GPU, CPU, versions, date
    arch: str
    size: int  # M = N = K
    profiled: tuple[Profiled, ...]
    lab: str = DEFAULT_LAB.stem


Counted = tuple[list[KernelCounts], Watching]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--raw", type=Path)
    parser.add_argument("--from", type=Path, dest="known")
    parser.add_argument("--lab", default=DEFAULT_LAB.stem)
    parser.add_argument("folders", type=Path, nargs="*")
    options = parser.parse_args()
    if options.known:
        raw = load(options.known)
        names = [str(path.resolve().relative_to(ROOT)) for path in options.folders]
        chosen = [each for each in raw.profiled if not names or each.folder in names]
        same = tuple(each for each in chosen if unchanged(each, raw.lab))
        raw = msgspec.structs.replace(raw, profiled=same)
        print(f"ncu's: {raw.machine}\nours: {machine()}\n", flush=True)
        for each in chosen:
            if each not in same:
                print(f"{each.folder}: left out: ncu watched another text of it\n")
        folders = [ROOT / each.folder for each in raw.profiled]
        ours = count_all(folders, raw.arch, raw.size, raw.lab)
    else:
        arch = _arch(options.lab)
        assert arch, "no GPU here: --from FILE"
        rungs = sorted(path.parent for path in ROOT.glob(f"reference/{options.lab}/[0-9]*/*.cu"))
        others = [ALICE, WIDE, LANES, COPIES]
        default = options.lab == DEFAULT_LAB.stem
        folders = options.folders or [*dict.fromkeys(rungs), *(others if default else [])]
        here = f"{gpu_names()[0]}, {machine()}"
        print(f"{here}\n", flush=True)
        ours = count_all(folders, arch, options.size, options.lab)
        profiled = profile_all(folders, ours, options.lab)
        raw = Raw(machine=here, arch=arch, size=options.size, profiled=profiled, lab=options.lab)
    if options.raw:
        save(options.raw, raw)
    show(ours, raw.profiled)


def _arch(lab: str) -> str | None:
    """Of the GPU here, with the instructions of that GPU alone where the lab asks for them."""
    here = first_gpu_arch()
    return here and load_lab(find_lab(lab)).arch_on(here)


def load(path: Path) -> Raw:
    return msgspec.json.decode(path.read_bytes(), type=Raw)


def save(path: Path, raw: Raw) -> None:
    """As JSON, one line for each submission."""
    lines = b",\n".join(msgspec.json.encode(each) for each in raw.profiled)
    bare = msgspec.json.encode(msgspec.structs.replace(raw, profiled=()))
    path.write_bytes(bare.replace(b"[]", b"[\n" + lines + b"\n]") + b"\n")


def unchanged(each: Profiled, lab: str = DEFAULT_LAB.stem) -> bool:
    """The submission is still what ncu watched."""
    return sources(ROOT / each.folder, lab) == each.sha256


def sources(folder: Path, lab: str) -> str:
    main = load_lab(find_lab(lab)).problem.interface.main
    return load_submission(folder, main).sha256


def count_all(folders: Sequence[Path], arch: str, n: int, lab: str) -> list[Counted | Rejected]:
    started = time.monotonic()
    with ThreadPoolExecutor(max_workers=min(8, len(os.sched_getaffinity(0)))) as pool:
        found = list(pool.map(lambda folder: counted(folder, arch, n, lab), folders))
    print(f"counted in {time.monotonic() - started:.1f} s", flush=True)
    return found


def profile_all(
    folders: Sequence[Path], ours: Sequence[Counted | Rejected], lab: str
) -> tuple[Profiled, ...]:
    """One run of ncu for all plans; its launches, in the order of the folders."""
    started = time.monotonic()
    known = [each for each in ours if not isinstance(each, Rejected)]
    kernels = {kernel.name for counts, _ in known for kernel in counts}
    left = list(profile([job for _, job in known], kernels, seconds=400))
    print(f"profiled {len(left)} launches in {time.monotonic() - started:.1f} s\n", flush=True)
    found = []
    for folder, each in zip(folders, ours, strict=True):
        times = 0 if isinstance(each, Rejected) else sum(kernel.times for kernel in each[0])
        name = str(folder.resolve().relative_to(ROOT))
        launches = tuple(left[:times])
        found.append(Profiled(folder=name, sha256=sources(folder, lab), launches=launches))
        del left[:times]
    assert not left, "launches that nobody counted"
    return tuple(found)


def counted(folder: Path, arch: str, n: int, lab: str) -> Counted | Rejected:
    """Our counts of every kind of launch, in the order the plan launches them; why not else."""
    bench = tools(lab)
    try:
        ready = cubes(folder, (n,), bench, arch)
    except Rejected as refusal:
        return refusal
    built, (plan,) = ready.built, ready.plans
    functions = {f.name: f for f in disassemble(built.cubin, bench.toolchain, bench.sandbox)}
    sampler = Sampler(
        built.ptx.read_text(), ready.submission.folder, load_engine(engine_library().compiled())
    )
    samples = sampler.sample(plan, SECONDS, EVERY)
    by = factors(samples, bench.lab.problem.at(plan.size))
    counts = [count(functions[s.kernel], s, f) for s, f in zip(samples, by, strict=True)]
    kinds = {o.kernel for o in plan.operations if isinstance(o, Launch)}
    assert kinds == {each.name for each in counts}
    return counts, Watching(problem=bench.lab.problem_ref, cubin=str(built.cubin), plan=plan)


def show(ours: Sequence[Counted | Rejected], profiled: Sequence[Profiled]) -> None:
    header, rows, patterns = ["kernel"], [], []
    for found, theirs in zip(ours, profiled, strict=True):
        folder, at = Path(theirs.folder), 0
        if isinstance(found, Rejected):
            print(f"{folder.name}: left out: {found}\n")
            continue
        for mine in found[0]:
            pairs = compare(mine, total(theirs.launches[at : at + mine.times]))
            at += mine.times
            if ROOT / folder in (WIDE, LANES, COPIES):
                waves = [_text(each) for each in pairs if str(each.quantity) in WAVES]
                patterns.append([mine.name.removesuffix("EvPKfPf"), *waves])
                continue
            header = ["kernel", *(str(each.quantity) for each in pairs)]
            rows.append([f"{folder.name} {mine.name[:14]}", *map(_text, pairs)])
        assert at == len(theirs.launches), f"{folder}: launches got lost"
    if rows:
        print("ours / ncu's (difference), or one figure that is both:\n")
        print(table(header, rows))
    if patterns:
        print("\nwavefronts of one access, likewise:\n")
        print(table(["pattern (see its sgemm.cu)", *WAVES], patterns))


def _text(each: Compared) -> str:
    theirs = "?" if each.theirs is None else f"{each.theirs:.6g}"
    if each.ours == each.theirs:
        return theirs
    apart = "" if each.apart is None else f" ({100 * each.apart:+.2f} %)"
    return f"{each.ours:.6g} / {theirs}{apart}"


if __name__ == "__main__":
    main()
