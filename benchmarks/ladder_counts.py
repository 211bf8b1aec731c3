"""What every rung does, counted, beside the formula: ``python -m benchmarks.ladder_counts``.

A kernel with BM×BN tiles of C asks global memory for M·N·K·(1/BM + 1/BN) elements and stores M·N.
The tile is read from the rung's header; a rung without shared memory has none, so every product
asks for its two factors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.measure import MAIN, ROOT, machine, table
from grader.base.records import Verdict
from grader.build.sass import disassemble
from grader.build.toolchain import find_toolchain
from grader.judge.pipeline import grade
from grader.judge.program import GradingContext, compile_for
from grader.labs.lab import Case, load_lab
from grader.labs.submission import load_submission
from grader.model.main_loop import summarise
from grader.results.rungs import find_rungs
from grader.run.protocol import quietly
from grader.sandbox.running import Sandbox
from ptxsim.findings import LineCount
from ptxsim.plan import Size

REFERENCE = ROOT / "reference" / "sgemm"
SIZE = Size.of(m=256, n=128, k=64)  # whole tiles for every rung
HEADER = (
    *("rung", "tile", "formula, KiB", "counted, KiB", "sectors per request"),
    *("shared requests per FMA", "wavefronts per request", "FFMA in main loop"),
    *("registers", "shared bytes"),
)
WARP = 32
_SIDES = re.compile(r"BM = (?:(?P<bm>\d+), )?BN = (?:BK = )?(?P<bn>\d+|T in \{[\d, ]+\})")


def tile(source: Path) -> tuple[int, int] | None:
    """BM and BN from a rung's header, 1 and 1 without shared memory; None where it says neither.

    Of several tiles that the host chooses from, the largest.
    """
    text = re.search(r"// Tile: ((?:.*\n)+?)// Bound", source.read_text())
    words = re.sub(r"\s*//\s*", " ", text[1]) if text else ""
    if "no shared memory" in words:
        return 1, 1
    sides = _SIDES.search(words)
    if sides is None:
        return None
    bn = max(int(number) for number in re.findall(r"\d+", sides["bn"]))
    return int(sides["bm"] or bn), bn


def formula_bytes(size: Size, edges: tuple[int, int]) -> float:
    """Bytes that threads ask of global memory: tiles of A and B once per block, C once."""
    loads = size["m"] * size["n"] * size["k"] * (1 / edges[0] + 1 / edges[1])
    return 4 * (loads + size["m"] * size["n"])


def row(folder: Path, bench: GradingContext) -> list[str]:
    """Raises ValueError unless the rung is accepted."""
    result = grade(folder, bench, quietly).result
    if result.verdict is not Verdict.AC or result.build is None:
        raise ValueError(f"{folder}: {result.verdict} {result.error}")
    lines, edges = result.lines, tile(folder / "sgemm.cu")
    main = max(result.build.kernels, key=lambda kernel: kernel.registers or 0)
    fma = total(lines, "flops") / 2 / WARP  # by whole warps
    return [
        folder.name,
        "×".join(str(edge) for edge in edges) if edges else "–",
        f"{formula_bytes(SIZE, edges) / 1024:.0f}" if edges else "–",
        f"{total(lines, 'global_bytes') / 1024:.0f}",
        ratio(total(lines, "global_sectors"), total(lines, "global_requests")),
        ratio(total(lines, "shared_requests"), fma),
        ratio(total(lines, "shared_wavefronts"), total(lines, "shared_requests")),
        f"{ffma_share(folder, bench):.1%}",
        str(main.registers),
        str(main.shared_bytes),
    ]


def total(lines: Sequence[LineCount], field: str) -> int:
    return sum(getattr(line, field) for line in lines)


def ratio(amount: float, of: float) -> str:
    return f"{amount / of:.2f}" if amount else "–"


def ffma_share(folder: Path, bench: GradingContext) -> float:
    """Of the instructions in the main loop; the best of the rung's kernels."""
    arch = bench.lab.architectures[0]
    built = compile_for(load_submission(folder, MAIN), bench, arch)
    kernels = map(summarise, disassemble(built.cubin, bench.toolchain, bench.sandbox))
    loops = [kernel.loop for kernel in kernels if kernel.loop]
    return max(loop.ffma / loop.instructions for loop in loops)


def main() -> None:
    lab = msgspec.structs.replace(load_lab(), cpu=(Case(id="counted", size=SIZE),))
    bench = GradingContext(lab=lab, toolchain=find_toolchain(), sandbox=Sandbox.open("auto"))
    rows = [row(REFERENCE / rung.name, bench) for rung in find_rungs(REFERENCE)]
    print(
        machine(),
        f"M, N, K = {SIZE['m']}, {SIZE['n']}, {SIZE['k']}; {lab.architectures[0]}",
        sep="; ",
    )
    print()
    print(table(HEADER, rows))


if __name__ == "__main__":
    main()
