"""cubin → functions, by nvdisasm."""

from __future__ import annotations

import re
from pathlib import Path

from grader.errors import MachineError, ToolchainError
from grader.model import phrase
from grader.performance.sass import loops as flow
from grader.performance.sass.code import Control, Function, Instruction, split_operands
from grader.sandbox.running import Limits, Sandbox
from grader.toolchain.discovery import Toolchain

_LIMITS = Limits(cpu_s=60, memory_mb=4096, output_bytes=64 << 20)
_TARGET = re.compile(r"^\s*\.target\s+(sm_\d+\w*)", re.MULTILINE)
_SECTION = re.compile(r"^\t\.section\t\.text\.(\S+?),.*$", re.MULTILINE)
_PLACE = re.compile(r'^\t//## File "(?P<file>[^"]*)", line (?P<line>\d+)')
_LABEL = re.compile(r"^(\.L_\w+):")
_CODE = re.compile(
    r"^\s+/\*(?P<address>[0-9a-f]{4,})\*/\s+(?P<guard>@!?U?P\w+\s+)?"
    r"(?P<opcode>[A-Z][\w.]*)\s*(?P<operands>[^;]*?)\s*;\s*(?:/\* 0x[0-9a-f]{16} \*/)?\s*$"
)
_HIGH_WORD = re.compile(r"^\s+/\* 0x(?P<word>[0-9a-f]{16}) \*/\s*$")
_TARGET_LABEL = re.compile(r"`\(([^)]+)\)")
_LINES = ("-g", "-gi", "-gp")
_PTX = ".nv_debug_ptx_txt"


def disassemble(cubin: Path, toolchain: Toolchain, sandbox: Sandbox) -> tuple[Function, ...]:
    """Every function of a cubin of Volta or later, with lines of the source and of the PTX.

    Raises ToolchainError when there is no nvdisasm, MachineError when it refuses the file.
    """
    tool = toolchain.nvdisasm
    if tool is None:
        raise ToolchainError(phrase("no nvdisasm: pip install 'nvidia-cuda-nvdisasm>=13.2,<14'"))
    # Inline assembly can make line tables that crash nvdisasm; it then runs without them.
    for lines in (_LINES, ()):
        done = sandbox.run(
            [str(tool), "-c", "-hex", *lines, str(cubin)],
            cwd=cubin.parent,
            limits=_LIMITS,
            readable=[*toolchain.roots, tool.parent.parent, cubin.parent],
        )
        if done.ok:
            break
    if not done.ok:
        words = "".join(done.stderr.strip().splitlines()[:1]) or f"status {done.returncode}"
        raise MachineError(
            phrase("nvdisasm cannot read {name}: {words}", name=cubin.name, words=words)
        )
    if len(done.stdout) >= _LIMITS.output_bytes:
        raise MachineError(
            phrase("{name} holds more machine code than the grader reads", name=cubin.name)
        )
    return parse(done.stdout)


def parse(listing: str) -> tuple[Function, ...]:
    """nvdisasm's listing (``-c -g -gi -gp -hex``) → functions, sorted by name."""
    target = _TARGET.search(listing)
    arch = target[1] if target else "unknown"
    starts = list(_SECTION.finditer(listing))
    ends = [*(match.start() for match in starts), len(listing)][1:]
    parts = (
        (match[1], listing[match.end() : end]) for match, end in zip(starts, ends, strict=True)
    )
    return tuple(_function(name, arch, text) for name, text in sorted(parts))


def _function(name: str, arch: str, text: str) -> Function:
    code: list[Instruction] = []
    labels: dict[str, int] = {}
    places: list[re.Match[str]] = []  # the markers above the next instruction
    file: str | None = None
    line: int | None = None
    ptx_line: int | None = None
    rows = text.split("\n")
    for number, row in enumerate(rows):
        if marker := _PLACE.match(row):
            places.append(marker)
        elif label := _LABEL.match(row):
            labels[label[1]] = len(code)
        elif item := _CODE.match(row):
            ptx = [int(place["line"]) for place in places if place["file"] == _PTX]
            ptx_line = ptx[-1] if ptx else ptx_line
            sources = [place for place in places if place["file"] != _PTX]
            if sources:
                file, line = _innermost(sources)
            places = []
            high = _HIGH_WORD.match(rows[number + 1]) if number + 1 < len(rows) else None
            operands = item["operands"]
            target = _TARGET_LABEL.search(operands)
            code.append(
                Instruction(
                    address=int(item["address"], 16),
                    opcode=item["opcode"],
                    operands=split_operands(operands),
                    guard=item["guard"].strip() if item["guard"] else None,
                    target=target[1] if target else None,
                    file=file,
                    line=line,
                    ptx_line=ptx_line,
                    control=_control(int(high["word"], 16)) if high else None,
                )
            )
    graph = flow.blocks(code, labels)
    return Function(
        name=name,
        arch=arch,
        entry="STO_CUDA_ENTRY" in text,
        instructions=tuple(code),
        blocks=graph,
        loops=flow.loops(graph),
    )


def _innermost(sources: list[re.Match[str]]) -> tuple[str | None, int | None]:
    """The innermost place in the submission, of a chain of inlined calls.

    The build names the submission's own files relative to its folder and all others in full.
    """
    for place in sources:
        if not place["file"].startswith(("/", "../")):
            return place["file"], int(place["line"])
    return None, None


def _control(high: int) -> Control:
    """``high``: the upper 64 bits of the instruction."""
    bits = high >> 41
    barriers = (bits >> 5 & 7, bits >> 8 & 7)
    return Control(
        stall=bits & 15,
        write_barrier=None if barriers[0] == 7 else barriers[0],
        read_barrier=None if barriers[1] == 7 else barriers[1],
        waits=tuple(k for k in range(6) if bits >> 11 + k & 1),
    )
