"""Functions → what a report says about them: main loop, opcode mix, spills, register banks."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from grader.build import Loop, SassFunction, SassInstruction
from grader.model.records import KernelSass, OpcodeCount, SassLine, SassLoop

_REGISTER = re.compile(r"-?\|?(R\d+|RZ)(?:\.\w+)*\|?")
_FFMA = ("FFMA", "FFMA2")
_HALF_RATE = ("sm_70", "sm_72", "sm_75", "sm_80")  # an FFMA keeps 16 lanes busy for two cycles


def summarise(function: SassFunction) -> KernelSass:
    code = function.instructions
    loop = main_loop(function)
    return KernelSass(
        name=function.name,
        arch=function.arch,
        instructions=sum(item.base != "NOP" for item in code),
        local_loads=sum(item.base == "LDL" for item in code),
        local_stores=sum(item.base == "STL" for item in code),
        tensor=tuple(sorted({item.opcode for item in code if item.tensor})),
        loop=_loop(function, loop) if loop else None,
    )


def main_loop(function: SassFunction) -> Loop | None:
    """The innermost loop that computes most: by FFMA, HFMA2 or tensor cores; None when none does.

    The copy that ptxas unrolled furthest wins over the remainder loops beside it.
    """
    return busiest_loop(function, lambda item: item.flops)


def busiest_loop(function: SassFunction, work: Callable[[SassInstruction], int]) -> Loop | None:
    """The innermost loop whose instructions do most of this work; None when none does any."""
    done = {loop: sum(map(work, loop_code(function, loop))) for loop in function.loops}
    busy = [loop for loop in function.loops if done[loop]]
    innermost = (
        loop for loop in busy if not any(set(other.blocks) < set(loop.blocks) for other in busy)
    )
    return max(innermost, key=lambda loop: done[loop], default=None)


def main_loop_code(function: SassFunction) -> tuple[SassInstruction, ...]:
    """The main loop's instructions; () without one."""
    loop = main_loop(function)
    return loop_code(function, loop) if loop else ()


def loop_code(function: SassFunction, loop: Loop) -> tuple[SassInstruction, ...]:
    """The loop's instructions in the order of their addresses."""
    return tuple(item for index in loop.blocks for item in function.of_block(index))


def _loop(function: SassFunction, loop: Loop) -> SassLoop:
    code = loop_code(function, loop)
    sums = accumulators(code)
    products = sum(item.flops for item in code) / 64  # with their sums, of each thread
    stalls = [item.control.stall for item in code if item.control is not None]
    mix = Counter(item.kind for item in code)
    lines: defaultdict[tuple[str, int], list[SassInstruction]] = defaultdict(list)
    for item in code:
        if item.file is not None and item.line is not None:
            lines[item.file, item.line].append(item)
    return SassLoop(
        address=code[0].address,
        instructions=len(code),
        ffma=sum(item.base in _FFMA for item in code),
        accumulators=sums,
        unroll=round(products / sums) if sums else 0,
        mix=opcode_counts(mix),
        bank_conflicts=bank_conflicts(code, function.arch),
        stall_cycles=sum(stalls) if len(stalls) == len(code) else None,
        lines=tuple(
            SassLine(
                file=file,
                line=line,
                instructions=len(items),
                ffma=sum(item.base in _FFMA for item in items),
                tensor=sum(item.tensor for item in items),
            )
            for (file, line), items in sorted(lines.items())
        ),
        tensor=sum(item.tensor for item in code),
    )


def opcode_counts(mix: Mapping[str, int]) -> tuple[OpcodeCount, ...]:
    """The most frequent first."""
    ordered = sorted(mix.items(), key=lambda pair: (-pair[1], pair[0]))
    return tuple(OpcodeCount(kind=kind, count=count) for kind, count in ordered if count)


def accumulators(code: Iterable[SassInstruction]) -> int:
    """The chains of dependent FFMA in one iteration, or of tensor-core instructions, each as often
    as it has sums in a thread. In the loop of a product, this is the number of elements of its
    result that a thread accumulates."""
    made_by_ffma: set[str] = set()
    chains = 0
    for item in code:
        written, *read = [text.lstrip("-").removesuffix(".reuse") for text in item.operands] or [""]
        product = item.product
        sums = 1 if item.base in _FFMA else 2 if item.base == "HFMA2" and item.flops else 0
        if product:  # as many rows of the result as four warps share, or one
            rows, lanes = (64, 128) if product.by_warpgroup else (16, 32)
            sums = rows * product.columns // lanes
        # The place of what is added, among the operands that are read.
        at = 1 if item.base == "HGMMA" and item.operands[1].startswith("gdesc") else 2
        if sums and len(read) > at:
            chains += sums * (read[at] not in made_by_ffma)
            made_by_ffma.add(written)
        elif (item.kind == "move" or item.base == "FADD") and not made_by_ffma.isdisjoint(read):
            made_by_ffma.add(written)  # ptxas renames a sum, or something else is added to it
        elif item.guard is None:
            made_by_ffma.discard(written)
    return chains


def bank_conflicts(code: Sequence[SassInstruction], arch: str) -> int:
    """Cycles for which FFMA wait for their registers in one iteration of the loop ``code``.

    Each bank delivers one register of a warp per cycle. If an FFMA takes two cycles, it waits one
    cycle if it needs three registers of one bank. If it takes one cycle, it issues as soon as
    neither bank lags behind by more than one register, as
    ``benchmarks/calibration/register_banks.py`` measured.
    """
    reads = ffma_reads(code)
    if arch in _HALF_RATE:
        return sum(max(each) > 2 for each in reads)
    behind, waited = (0, 0), 0
    for _ in range(2):  # the first iteration brings the banks to their steady state
        waited = 0
        for each in reads:
            behind = (max(behind[0] - 1, 0), max(behind[1] - 1, 0))
            while any(each) and max(behind) > 1:
                behind = (max(behind[0] - 1, 0), max(behind[1] - 1, 0))
                waited += 1
            behind = (behind[0] + each[0], behind[1] + each[1])
    return waited


def ffma_reads(code: Sequence[SassInstruction]) -> list[tuple[int, int]]:
    """For every instruction, how many registers an FFMA reads from each bank; (0, 0) for others.

    From Volta on there are two banks, even and odd registers. An operand that the instruction
    before left in the reuse cache (``.reuse``, same position) is not read from its bank.
    """
    found = []
    cached: dict[int, str] = {}
    for item in code:
        sources = enumerate(map(_REGISTER.fullmatch, item.operands[1:]), 1)
        registers = {position: match[1] for position, match in sources if match}
        read = {
            name
            for position, name in registers.items()
            if item.base in _FFMA and name != "RZ" and cached.get(position) != name
        }
        odd = sum(int(name[1:]) % 2 for name in read)
        found.append((len(read) - odd, odd))
        cached = {
            position: name
            for position, name in registers.items()
            if item.operands[position].endswith(".reuse")
        }
    return found
