"""One reading of PTX: the grader takes a text as ptxas does, or refuses it."""

import json
import re
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from harness import allocated, cuda_tool, engine, kernels, launched, planned, table
from ptxsim.frontend.interface import interface
from ptxsim.frontend.module import read_module
from ptxsim.frontend.reader import parse
from ptxsim.frontend.records import PtxError
from ptxsim.lowering.memory_layout import initial_bytes
from ptxsim.outcome import Reason, RefusedProgram, SimLimits
from ptxsim.plan.records import Place
from ptxsim.simulator import Simulator

NOWHERE = Path("/nowhere")
HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
POISON = 0xDEADBEEF


class Odd(NamedTuple):
    """A row of ptx_oddities.txt, which explains its columns."""

    name: str
    body: str
    says: int | str
    before: str = ""
    calls: str = ""


def oddities() -> Iterator[Odd]:
    """Read the table. A row that starts with a dollar sign names a text of the others."""
    texts: dict[str, str] = {}
    for number, line in enumerate(Path(__file__).with_name("ptx_oddities.txt").open()):
        name, *columns = line.rstrip("\n").split(" ¦ ")
        for known, text in texts.items():
            columns = [each.replace(known, text) for each in columns]
        if name.startswith("$"):
            (texts[name],) = columns
        elif columns:
            columns = [each.replace("m#", f"m{number}") for each in columns]
            body, says, *more = (each.encode().decode("unicode_escape") for each in columns)
            yield Odd(name, body, int(says, 0) if re.fullmatch(r"\d\w*", says) else says, *more)


ODDITIES = list(oddities())
READ = [odd for odd in ODDITIES if isinstance(odd.says, int)]
REFUSED = [odd for odd in ODDITIES if isinstance(odd.says, str)]


def kernel(odd: Odd, name: str) -> str:
    return kernels("odd.ptx", before=odd.before, name=name, body=odd.body)


@cache
def module() -> str:
    """All oddities that are read, a kernel each."""
    return HEADER + "".join(kernel(odd, f"k{i}") for i, odd in enumerate(READ))


def assembled(folder: Path, arch: str) -> Path:
    """The cubin that ptxas makes of ``module``."""
    source, cubin = folder / "odd.ptx", folder / "odd.cubin"
    source.write_bytes(module().encode("ascii"))
    ptxas = cuda_tool("ptxas")
    command = [str(ptxas), f"-arch={arch}", "-o", str(cubin), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return cubin


def machine_code(folder: Path) -> dict[str, list[str]]:
    """The instructions of each kernel."""
    nvdisasm = cuda_tool("nvdisasm")
    cubin = assembled(folder, "sm_80")
    text = subprocess.run(
        [str(nvdisasm), "-c", str(cubin)], capture_output=True, text=True, check=True
    ).stdout
    parts = re.split(r"^\s*\.section\s+\.text\.(\w+)", text, flags=re.MULTILINE)
    return {
        name: re.findall(r"/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", code)
        for name, code in zip(parts[1::2], parts[2::2], strict=True)
    }


def stored(code: list[str]) -> int:
    """The constant that straight machine code stores, be it by way of shared memory."""
    registers, shared = {"RZ": 0}, dict[int, int]()
    for line in code:
        opcode, _, rest = line.partition(" ")
        target, *sources = (part.strip() for part in rest.split(","))
        if opcode.startswith("HFMA2"):  # two halves: a way to write a constant
            high, low = (struct.pack("<e", float(part)) for part in sources[-2:])
            registers[target] = int.from_bytes(low + high, "little")
        elif opcode.startswith(("MOV", "IMAD.MOV")) and "c[" not in sources[-1]:
            text = sources[-1]
            registers[target] = registers[text] if "R" in text else int(text, 16) & 0xFFFFFFFF
        elif opcode.startswith("STS"):
            first = int(sources[0][1:])
            for word in range({"STS.64": 2, "STS.128": 4}.get(opcode, 1)):
                shared[address(target) + 4 * word] = registers[f"R{first + word}"]
        elif opcode.startswith("LDS"):
            registers[target] = shared[address(sources[0])]
        elif opcode.startswith("STG"):
            return registers[sources[0]]
        else:
            registers.pop(target, None)  # computed by something else: no constant
    raise AssertionError(code)


def address(text: str) -> int:
    return 0 if text == "[RZ]" else int(text[1:-1], 16)


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return machine_code(tmp_path_factory.mktemp("odd"))


@pytest.fixture(scope="module")
def simulator() -> Simulator:
    return Simulator(module(), NOWHERE, engine())


@pytest.mark.parametrize("odd", READ, ids=lambda odd: odd.name)
def test_what_is_read_runs_as_ptxas_compiles_it(
    odd: Odd, code: dict[str, list[str]], simulator: Simulator
) -> None:
    name = f"k{READ.index(odd)}"
    out = np.array([POISON], np.uint32)
    memory = allocated(4)
    plan = planned(memory, launched(name, *memory, block=(1, 1, 1)), inputs=1, outputs=0)
    outcome = simulator.run(plan, {0: out.view(np.uint8)}, SimLimits(seconds=20))
    assert not outcome.findings
    assert int(out[0]) == odd.says
    assert odd.calls or stored(code[name]) == odd.says


@pytest.mark.parametrize("odd", REFUSED, ids=lambda odd: odd.name)
def test_what_is_not_read_is_refused_with_its_line(odd: Odd) -> None:
    assert isinstance(odd.says, str)
    with pytest.raises(PtxError, match=r"^line \d+ of the PTX: .*" + re.escape(odd.says)):
        parse(HEADER + kernel(odd, "k"), NOWHERE)


@pytest.mark.gpu
@pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="no NVIDIA GPU here")
def test_a_gpu_runs_what_was_read(tmp_path: Path) -> None:
    """In a process of its own: a CUDA context in this one would disturb other tests."""
    asked = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    cubin = assembled(tmp_path, f"sm_{said.split()[0].replace('.', '')}")
    done = subprocess.run(
        [sys.executable, "-c", kernels("odd_on_gpu.py.in"), str(cubin), str(len(READ))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [odd.says for odd in READ]


def test_the_corpus_is_large() -> None:
    assert len(READ) >= 60
    assert len(REFUSED) >= 60
    assert len({odd.name for odd in ODDITIES}) == len(ODDITIES)


# --- size: time grows with the text and no faster


KERNEL = ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<9>;\n.reg .pred %q<3>;\n"
END = "\nret;\n}\n"


def counted(text: str, count: int) -> str:
    return "".join(text.replace("#", str(i)) for i in range(count))


def large(parts: Sequence[str], size: int) -> str:
    """A text of about so many characters, by a row of large.txt."""
    text = ""
    for part in parts:
        for name, stands_for in HOLES.items():
            part = part.replace(name, stands_for)
        per, times, repeated = part.partition("×")
        text += counted(repeated, size // int(per)) if times else per
    return text.replace("$SIZE", str(size))


LARGE = {name: parts for name, *parts in table("large.txt")}
HOLES = {"$KERNEL": KERNEL, "$END": END, "$OPEN": "{" * 60, "$CLOSE": "}" * 60}
HOLES |= {r"\n": "\n", r"\x20": " "}


def seconds(text: str) -> float:
    """Of this process: what others do on the machine does not count."""
    started = time.process_time()
    with suppress(PtxError):
        parse(text, NOWHERE)
    return time.process_time() - started


@pytest.mark.parametrize("parts", LARGE.values(), ids=LARGE.keys())
def test_hostile_text_takes_time_in_proportion(parts: Sequence[str]) -> None:
    """Four times the text takes four times as long; sixteen times would be quadratic.

    Caches and frequencies differ from moment to moment, so one good measurement is enough.
    """
    ratios = []
    while not ratios or (ratios[-1] >= 9 and len(ratios) < 4):
        short, long = (seconds(large(parts, size)) for size in (30_000, 120_000))
        ratios.append(long / max(short, 0.01))
    assert ratios[-1] < 9, ratios


def test_bounds_are_named() -> None:
    for text, words in (
        (" " * ((32 << 20) + 1), "larger than 32 MB"),
        (KERNEL + "{" * 80, "nested more than 64 deep"),
        (KERNEL + "add %r1" + ",%r1" * 2000 + ";", "operands"),
        (".global .b64 x[9223372036854775807];", "larger than 1024 GB"),
    ):
        with pytest.raises(PtxError, match=words):
            parse(text, NOWHERE)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (counted("@%q1 bra L#; L#:", 4097), "4096"),
        (
            counted("L#: add.u32 %r1, %r1, 1;", 200)
            + "".join(f"@%q1 bra L{i};" for i in reversed(range(200))),
            "loops in loops",
        ),
    ],
    ids=["blocks", "loops"],
)
def test_kernels_too_large_to_simulate_are_refused_with_the_bound(body: str, words: str) -> None:
    simulator = Simulator(HEADER + KERNEL + body + END, NOWHERE, engine())
    plan = planned((), launched("k", params=bytes(8)), inputs=0, outputs=0)
    with pytest.raises(RefusedProgram, match=words):
        simulator.run(plan, {}, SimLimits(seconds=20))


# --- who is to blame, and what the host may know


def refusal(text: str) -> RefusedProgram:
    with pytest.raises(RefusedProgram) as caught:
        interface(read_module(text, NOWHERE))
    return caught.value


def test_assembly_that_cannot_be_read_is_a_compile_error_at_its_line() -> None:
    text = KERNEL + ".loc 1 12 3\n// begin inline asm\n.loc 1 1;\n// end inline asm\n" + END
    error = refusal(text + '.file 1 "sgemm.cu"\n')
    assert error.reason is Reason.ASSEMBLY
    assert error.place == Place(file="sgemm.cu", line=12)
    assert str(error) == f"{error.message} (sgemm.cu:12)" and "line 7" in str(error.message)


def test_what_nvcc_wrote_and_cannot_be_read_is_no_fault_of_the_submission() -> None:
    assert refusal(KERNEL + ".novelty;" + END).reason is Reason.UNREADABLE


def test_tables_for_debuggers_name_each_other() -> None:
    """As ``nvcc -G`` writes them."""
    parse(HEADER + ".section .debug_info {\n.b32 .debug_abbrev, x + 4\nx: .b8 1\n}\n", NOWHERE)


def test_the_interface_of_a_module() -> None:
    found = interface(read_module(kernels("interface.ptx"), NOWHERE))
    assert {
        name: (symbol.space, symbol.size, symbol.align) for name, symbol in found.symbols.items()
    } == {"table": ("global", 48, 16), "small": ("const", 2, 2), "open": ("global", 24, 8)}
    assert list(found.entries) == ["k"]
    assert [(p.offset, p.size) for p in found.entries["k"].params] == [(0, 1), (8, 12), (24, 8)]
    assert found.entries["k"].max_threads == 32


def test_initial_values() -> None:
    module = parse(
        ".global .b32 y[4];\n.global .b16 x[2][3] = {{1, 2, 3}, {-1, 65541, 6}};\n"
        ".global .u64 a[2] = {y + 4, generic(y)};\n"
        ".global .b8 m[2] = {0xFF(y), 0XFF00(generic(y)+256)};\n"
        ".global .f32 f[2] = {1.5, 0f3F800000};\n",
        NOWHERE,
    )
    addresses = {"y": 0x7F00_1234_5678}
    found = {v.name: initial_bytes(v, addresses).tobytes() for v in module.variables}
    assert found["x"] == struct.pack("<6H", 1, 2, 3, 0xFFFF, 5, 6)
    assert found["a"] == struct.pack("<2Q", 0x7F00_1234_567C, 0x7F00_1234_5678)
    assert found["m"] == b"\x78\x57"
    assert found["f"] == struct.pack("<2f", 1.5, 1.0)
    with pytest.raises(PtxError, match="initial values"):  # ptxas does not fill the first row
        parse(".global .b32 x[2][3] = {{1}, {4}};", NOWHERE)
