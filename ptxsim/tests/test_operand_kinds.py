"""Every instruction with every kind of operand that ptxas takes: the right value, or a refusal."""

import re
import subprocess
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from float_forms import FLOAT_FORMS
from harness import cuda_tool, engine, kernels, launched, planned
from integer_forms import INTEGER_FORMS
from memory_lines import MEMORY, VARIABLES, memory_lines, warp_lines
from ptx_form import COUNT, GLOBAL_AT, LANES, OLD, REGISTERS, Line, lines, predicate
from ptxsim.outcome import RefusedProgram, SimLimits
from ptxsim.plan.records import Allocation
from ptxsim.simulator import Simulator
from video_forms import VIDEO_FORMS

INPUTS_AT, RESULTS_AT = 0x7F00_0000_0000, 0x7F80_0000_0000
_OF_A_KERNEL = 250  # lines in one kernel


def inputs() -> np.ndarray:
    """What the registers hold, eight bytes for each lane, in the order of ``prologue``."""
    rows = [make(n) for _, make in REGISTERS.values() for n in range(COUNT)]
    rows += [predicate(n) for n in range(COUNT)]
    return np.array(rows, np.uint64)


def prologue() -> str:
    text = [f".reg .{kind} %{name}_<{COUNT}>;" for name, (kind, _) in REGISTERS.items()]
    text += [f".reg .b{size} %o{size};" for size in (16, 32, 64)]
    text += [".reg .b16 %k16; .reg .b32 %k32, %c32, %all; .reg .b64 %k64, %c64;"]
    text += [".reg .pred %p<9>, %po, %first; .reg .b64 %in, %out, %t; .reg .b32 %lane;"]
    text += ["ld.param.u64 %in, [a]; ld.param.u64 %out, [b];"]
    text += ["mov.u32 %lane, %tid.x; mul.wide.u32 %t, %lane, 8;"]
    text += ["add.u64 %in, %in, %t; add.u64 %out, %out, %t;"]
    names = [(f"%{name}_{n}", kind) for name, (kind, _) in REGISTERS.items() for n in range(COUNT)]
    for at, (name, kind) in enumerate(names):
        text.append(f"ld.global.{kind} {name}, [%in+{at * LANES * 8}];")
    for n in range(COUNT):
        text.append(f"ld.global.u64 %t, [%in+{(len(names) + n) * LANES * 8}];")
        text.append(f"setp.ne.u64 %p{n}, %t, 0;")
    text.append("setp.eq.u32 %first, %lane, 0;")
    for space, name in VARIABLES.items():
        text.append(f".reg .b64 %a_{space}, %g_{space}; .reg .b32 %n_{space};")
        if space in ("shared", "local"):
            text.append(f".{space} .align 16 .b8 {name}[{len(MEMORY)}];")
            for at in range(0, len(MEMORY), 4):
                word = int.from_bytes(MEMORY[at : at + 4], "little")
                guard = "@%first " if space == "shared" else ""
                text.append(f"{guard}st.{space}.u32 [{name}+{at}], {word};")
        text.append(f"mov.u64 %a_{space}, {name}; add.u64 %a_{space}, %a_{space}, 16;")
        text.append(f"cvt.u32.u64 %n_{space}, %a_{space}; cvta.{space}.u64 %g_{space}, %a_{space};")
    text.append("mov.b32 %c32, 5; mov.b32 %all, -1; mov.b64 %c64, 5; bar.sync 0;")
    return "\n".join(text)


def stored(line: Line, at: int) -> tuple[str, str]:
    """What stands before and behind a line: its destination is set, then stored."""
    keep = {
        "%po": ("mov.pred %po, 0;", "selp.b64 %t, 1, 0, %po;"),
        "%o16": (f"mov.b16 %o16, {OLD & 0xFFFF};", "cvt.u64.u16 %t, %o16;"),
        "%o32": (f"mov.b32 %o32, {OLD & 0xFFFFFFFF};", "cvt.u64.u32 %t, %o32;"),
        "%o64": (f"mov.b64 %o64, {OLD};", "mov.b64 %t, %o64;"),
    }[line.target]
    return keep[0], f"{keep[1]} st.global.u64 [%out+{at * LANES * 8}], %t;"


def module(chosen: Sequence[Line], sm: int) -> tuple[str, dict[int, Line]]:
    """A kernel of these lines, and which row of the text holds which of them."""
    rows: dict[int, Line] = {}
    head = kernels("operand_kinds.ptx", sm=sm, bytes=", ".join(map(str, MEMORY)))
    text = f"{head}{prologue()}\n"
    row = text.count("\n") + 1
    parts = []
    for at, line in enumerate(chosen):
        before, behind = stored(line, at)
        parts.append(f"{before}\n{line.text}\n{behind}\n")
        rows[row + 3 * at + 1] = line
    return text + "".join(parts) + "ret;\n}\n", rows


def accepted(folder: Path, chosen: Sequence[Line], sm: int) -> list[Line]:
    """Those that ptxas takes; it names the row of each that it does not."""
    text, rows = module(chosen, sm)
    source = folder / f"all_{sm}.ptx"
    source.write_text(text + "a mistake\n")  # so that it stops once it has read all
    ptxas = cuda_tool("ptxas")
    command = [str(ptxas), f"-arch=sm_{sm}", "-o", str(folder / "none"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wrong = {int(row) for row in re.findall(r", line (\d+); ", done.stderr)}
    assert max(wrong) == text.count("\n") + 1, done.stderr[-500:]  # it came to the end
    return [line for row, line in rows.items() if row not in wrong]


def simulated(chosen: Sequence[Line], sm: int) -> tuple[dict[str, str], list[str]]:
    """The lines that are refused, with the reason, and those with a wrong value."""
    refused: dict[str, str] = {}
    wrong: list[str] = []
    for first in range(0, len(chosen), _OF_A_KERNEL):
        left = list(chosen[first : first + _OF_A_KERNEL])
        while True:
            text, rows = module(left, sm)
            try:
                results = run(text, len(left))
                break
            except RefusedProgram as refusal:
                line = rows[refusal.findings[0].ptx_line or 0]
                unknown = f"know the PTX instruction {line.opcode};" in str(refusal)
                for other in list(left):
                    if other is line or (unknown and other.opcode == line.opcode):
                        refused[other.name] = str(refusal)
                        left.remove(other)
        wrong += filter(None, map(difference, left, results))
    return refused, wrong


def run(text: str, count: int) -> np.ndarray:
    given, results = inputs(), np.zeros((count, LANES), np.uint64)
    places = (("A", INPUTS_AT, given.nbytes, None), ("B", RESULTS_AT, results.nbytes, None))
    glob = ("glob", GLOBAL_AT, 64, "glob")
    memory = tuple(
        Allocation(name=name, address=at, size=size, symbol=symbol)
        for name, at, size, symbol in (*places, glob)
    )
    plan = planned(memory, launched("k", *memory[:2]), outputs=0)
    buffers = {i: a.reshape(-1).view(np.uint8) for i, a in enumerate((given, results))}
    outcome = Simulator(text, Path("/nowhere"), engine()).run(plan, buffers, SimLimits(seconds=60))
    assert outcome.findings == ()
    assert outcome.stopped is None
    return results


def difference(line: Line, got: np.ndarray) -> str:
    for lane, (have, want) in enumerate(zip(got.tolist(), line.wanted(), strict=True)):
        if want is not None and have != want:
            return f"{line.name}: lane {lane} got {have:#x}, want {want:#x}"
    return ""


# ptxas takes a predicate here.
ODD = re.compile(r"(setp?\.\w+\S*bf16x2|mov\.b64) .*\(predicate at [0-3]\)")


def every_line() -> Iterator[Line]:
    for form in (*INTEGER_FORMS, *FLOAT_FORMS):
        yield from lines(form)
    for at, form in enumerate(VIDEO_FORMS):
        plain = not {".", "-"} & set(form.text)  # what has a part, or a sign, is a register
        yield from islice(lines(form), None if plain and at % 4 == 0 else 1)
    yield from memory_lines()
    yield from warp_lines()


def some_lines() -> Iterator[Line]:
    """Every instruction with its plain operands, and every kind of operand once for each opcode
    without its types."""
    seen: set[tuple[str, str]] = set()
    for line in every_line():
        base = line.opcode.split(".")[0]
        keys = {(line.opcode, ""), (base, line.what)}
        if not keys <= seen:
            seen |= keys
            yield line


def check(folder: Path, chosen: Sequence[Line], least: int) -> None:
    count = 0
    for sm in (80, 90):
        taken = accepted(folder, [line for line in chosen if line.sm == sm], sm)
        refused, wrong = simulated(taken, sm)
        assert wrong == []
        assert [name for name in refused if not ODD.match(name)] == []
        count += len(taken)
    assert count >= least


def test_what_ptxas_takes_has_the_right_value(tmp_path: Path) -> None:
    check(tmp_path, list(some_lines()), 2500)


@pytest.mark.slow
def test_every_type_with_every_kind_of_operand(tmp_path: Path) -> None:
    check(tmp_path, list(every_line()), 20000)
