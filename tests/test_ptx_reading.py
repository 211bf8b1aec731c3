"""One reading of PTX: the grader takes a text as ptxas does, or refuses it."""

from __future__ import annotations

import re
import struct
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from grader.model import Allocation, Launch, Mnk, Plan
from grader.ptx import PtxError, parse
from grader.sim import SimLimits, Simulator
from grader.toolchain import find_toolchain
from tests.ptx_oddities import ODDITIES, Odd

NOWHERE = Path("/nowhere")
HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
ADDRESS = 0x7F00_0000_0000
POISON = 0xDEADBEEF
READ = [odd for odd in ODDITIES if isinstance(odd.says, int)]
REFUSED = [odd for odd in ODDITIES if isinstance(odd.says, str)]


def kernel(odd: Odd, name: str) -> str:
    return f"""
{odd.before}
.visible .entry {name}(.param .u64 p)
{{
.reg .b64 %rd<3>;
.reg .b32 %r<9>;
.reg .pred %q<3>;
ld.param.u64 %rd1, [p];
mov.u32 %r1, 1;
{odd.body}
st.global.u32 [%rd1], %r1;
ret;
}}
"""


@cache
def module() -> str:
    """All oddities that are read, a kernel each."""
    return HEADER + "".join(kernel(odd, f"k{i}") for i, odd in enumerate(READ))


@cache
def machine_code(folder: Path) -> dict[str, list[str]]:
    """What ptxas makes of ``module``: the instructions of each kernel."""
    tools = find_toolchain()
    assert tools.nvdisasm is not None
    source, cubin = folder / "odd.ptx", folder / "odd.cubin"
    source.write_bytes(module().encode("ascii"))
    ptxas = tools.nvcc.resolve().with_name("ptxas")
    done = subprocess.run(
        [str(ptxas), "-arch=sm_80", "-o", str(cubin), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    text = subprocess.run(
        [str(tools.nvdisasm), "-c", str(cubin)], capture_output=True, text=True, check=True
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
    raise AssertionError(code)


def address(text: str) -> int:
    return 0 if text == "[RZ]" else int(text[1:-1], 16)


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return machine_code(tmp_path_factory.mktemp("odd"))


@pytest.fixture(scope="module")
def simulator() -> Simulator:
    return Simulator(module(), NOWHERE)


@pytest.mark.parametrize("odd", READ, ids=lambda odd: odd.name)
def test_what_is_read_runs_as_ptxas_compiles_it(
    odd: Odd, code: dict[str, list[str]], simulator: Simulator
) -> None:
    name = f"k{READ.index(odd)}"
    out = np.array([POISON], np.uint32)
    allocation = Allocation(name="A", address=ADDRESS, size=4)
    launch = Launch(
        kernel=name,
        grid=(1, 1, 1),
        block=(1, 1, 1),
        shared_bytes=0,
        params=struct.pack("<Q", ADDRESS),
        pointers=(),
    )
    plan = Plan(size=Mnk(m=1, n=1, k=1), allocations=(allocation,), operations=(launch,))
    outcome = simulator.run(plan, {0: out.view(np.uint8)}, SimLimits(seconds=20))
    assert not outcome.findings
    assert int(out[0]) == odd.says
    assert odd.calls or stored(code[name]) == odd.says


@pytest.mark.parametrize("odd", REFUSED, ids=lambda odd: odd.name)
def test_what_is_not_read_is_refused_with_its_line(odd: Odd) -> None:
    assert isinstance(odd.says, str)
    with pytest.raises(PtxError, match=r"^line \d+ of the PTX: .*" + re.escape(odd.says)):
        parse(HEADER + kernel(odd, "k"), NOWHERE)


def test_the_corpus_is_large() -> None:
    assert len(READ) >= 60
    assert len(REFUSED) >= 60
    assert len({odd.name for odd in ODDITIES}) == len(ODDITIES)
