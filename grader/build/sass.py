"""Machine code that ptxas made of a kernel: nvdisasm's listing → instructions, blocks, loops."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from posixpath import normpath

from grader.base import Finding, Kind, MachineError, ToolchainError
from grader.build.toolchain import Toolchain
from grader.sandbox import ProcessLimits, Sandbox
from ptxsim.findings import Severity
from ptxsim.plan import Record
from ptxsim.text import phrase

_SPACED = re.compile(r"\s*,\s*")
_MEMORY_BITS = re.compile(r"(?:U?S?)(8|16|32|64|128|256)")
_TENSOR = re.compile(r"(?:[HIDBQO]|OMX)MMA|(?:[HIBQ])GMMA|UTC\w*MMA")
_WARP_SHAPE = re.compile(r"(8|16)(8)(4|8|16)")
_GROUP_SHAPE = re.compile(r"(64)x(\d+)x(\d+)")
_MATRICES = re.compile(r"(?:LDSM|STSM)\.16\.MT?88(?:\.([24]))?")
_MATRIX_BYTES = 4  # of a matrix of 8 by 8 halves, for each lane
_WARPGROUP = 4  # warps
_MOST_BLOCKS = 4096  # of a function whose loops are looked for: the time grows with the square
_TYPE_BYTES = {"f16": 2, "bf16": 2, "tf32": 4}
_SIZED = ("LDS", "LDG", "STS", "STG", "LDL", "STL", "LDGSTS", "LD", "ST")
_NAMED = re.compile(r"FFMA2?|UBLKCP|UTMALDG|UTMASTG|(?:ATOM|RED).*")
# The class of an opcode is the first whose pattern matches it, modifiers aside.
_KINDS = {
    name: re.compile(pattern)
    for name, pattern in (
        ("BAR", r"BAR"),
        ("convert", r"[IF]2[IFP]\w*|FRND"),
        (
            "integer",
            r"U?(?:V?I(?:ADD|MAD|MUL|SETP|MNMX|ABS|DP|SCADD)\w*|VIADD\w*|LEA|P?LOP\w*|SHF|SH[LR]|"
            r"BF[EI]|BMSK|BREV|FLO|POPC|SGXT|VABSDIFF\w*)",
        ),
        ("move", r"U?MOV\w*|U?SEL|FSEL|U?PRMT|CS2U?R|S2U?R|[RP]2(?:[RP]|UR)|SHFL|VOTEU?|U?LDCU?"),
        ("branch", r"BRXU?|BRA|JM[PX]|CALL|RET|EXIT|BREAK|BSSY|BSYNC|BMOV|WARPSYNC|YIELD|KILL"),
        (
            "synchronise",
            r"MEMBAR|DEPBAR|LDGDEPBAR|ERRBAR|CCTL|SYNCS|NANOSLEEP|FENCE|WARPGROUP|UCGABAR_\w+|"
            r"UTMACMDFLUSH|ELECT",
        ),
        ("float", r"F(?:ADD|MUL|SET|MNMX|CHK)\w*|MUFU|H(?:ADD2|MUL2|FMA2)\w*|D(?:ADD|MUL|FMA)"),
    )
}


class Control(Record):
    """The scheduling fields of a 128-bit instruction (Volta and later), bits 105 to 125."""

    stall: int  # cycles the warp waits before its next instruction may issue
    write_barrier: int | None  # scoreboard freed when the result is there
    read_barrier: int | None  # scoreboard freed when the operands are read
    waits: tuple[int, ...]  # scoreboards waited for before issue


class Product(Record):
    """Shape and types of the product that a tensor-core instruction computes."""

    kind: str  # type of the inputs: "f16", "bf16", "tf32"
    sums: str  # type of the sums: "f32", "f16"
    flops: int  # of one warp that executes it
    by_warpgroup: bool  # four warps execute it together: HGMMA
    columns: int  # of the result: 8 of HMMA
    shared_bytes: int  # that it reads from shared memory, for one of the warps


class SassInstruction(Record):
    """One machine instruction."""

    address: int  # bytes from the start of the function
    opcode: str  # with modifiers: "LDS.128"
    operands: tuple[str, ...]
    guard: str | None  # "@!P0"
    target: str | None  # label of a direct branch
    file: str | None  # inside the submission
    line: int | None
    ptx_line: int | None  # line of the PTX text it was made from
    control: Control | None  # None when the encoding is not known

    @property
    def base(self) -> str:
        """The opcode without modifiers."""
        return self.opcode.split(".")[0]

    @property
    def never(self) -> bool:
        """Whether its guard is never true: it issues and does nothing. ptxas puts such loads before
        LDGSTS."""
        return self.guard == "@!PT"

    @property
    def bits(self) -> int:
        """Bits that one lane moves in a memory access."""
        if matrices := _MATRICES.fullmatch(self.opcode):
            return 8 * _MATRIX_BYTES * int(matrices[1] or 1)
        found = [_MEMORY_BITS.fullmatch(part) for part in self.opcode.split(".")[1:]]
        return next((int(match[1]) for match in found if match), 32)

    @property
    def tensor(self) -> bool:
        """Whether it runs on tensor cores. HFMA2.MMA does not, in spite of its name."""
        return _TENSOR.fullmatch(self.base) is not None

    @property
    def product(self) -> Product | None:
        """Return the product of HMMA and HGMMA, without sparsity; None for all others."""
        base, *mods = self.opcode.split(".")
        group = base == "HGMMA"
        if (not group and base != "HMMA") or not mods or "SP" in mods:
            return None
        shape = (_GROUP_SHAPE if group else _WARP_SHAPE).fullmatch(mods[0])
        if shape is None:
            return None
        m, n, k = map(int, shape.groups())
        kind = "bf16" if "BF16" in mods else "tf32" if "TF32" in mods else "f16"
        share = _WARPGROUP if group else 1
        # A comes from registers, or like B from shared memory.
        rows = n + (m if self.operands[1].startswith("gdesc") else 0)
        return Product(
            kind=kind,
            sums="f32" if "F32" in mods else "f16",
            flops=2 * m * n * k // share,
            by_warpgroup=group,
            columns=n,
            shared_bytes=rows * k * _TYPE_BYTES[kind] // share if group else 0,
        )

    @property
    def flops(self) -> int:
        """Floating-point operations of a warp in a multiplication with sum, else 0."""
        if self.base in ("FFMA", "FFMA2"):
            return 64 if self.base == "FFMA" else 128
        if self.base == "HFMA2":  # also moves a constant, then without factors
            return 0 if any(text.startswith(("RZ", "-RZ")) for text in self.operands[1:3]) else 128
        product = self.product
        return product.flops if product else 0

    @property
    def kind(self) -> str:
        """Its class in an opcode mix: "LDS.128", "integer", "branch", …"""
        base = self.base
        if self.never:
            return "other"
        if base in _SIZED:
            return f"{base}.{self.bits}"
        if base in ("LDSM", "STSM"):
            return f"{base}.{self.bits // 8 // _MATRIX_BYTES}"
        if _NAMED.fullmatch(base) or self.tensor or (base == "HFMA2" and self.flops):
            return base
        if base == "IMAD" and ".MOV" in self.opcode:
            return "move"
        return next((name for name, pattern in _KINDS.items() if pattern.fullmatch(base)), "other")


class BasicBlock(Record):
    """Instructions start ≤ i < end of a function, entered at the top and left at the bottom."""

    start: int
    end: int
    successors: tuple[int, ...]  # block indices


class Loop(Record):
    """A natural loop: ``head`` dominates ``blocks`` and is branched back to."""

    head: int
    blocks: tuple[int, ...]  # sorted, with the head


class SassFunction(Record):
    """The code of one kernel or device function."""

    name: str  # mangled
    arch: str  # "sm_90"
    entry: bool  # a kernel, not a device function that stayed a call
    instructions: tuple[SassInstruction, ...]
    blocks: tuple[BasicBlock, ...]
    loops: tuple[Loop, ...]

    def of_block(self, index: int) -> tuple[SassInstruction, ...]:
        block = self.blocks[index]
        return self.instructions[block.start : block.end]


# --- blocks and loops --------------------------------------------------------------------------

_LEAVES = {"EXIT", "RET", "KILL", "BRX", "BRXU", "JMX"}
_JUMPS = {"BRA", "JMP"}


def _blocks(code: Sequence[SassInstruction], labels: Mapping[str, int]) -> tuple[BasicBlock, ...]:
    """``labels``: name → index of the instruction it stands before."""
    goes = [labels.get(i.target) if i.base in _JUMPS and i.target else None for i in code]
    targets = {target for target in goes if target is not None}
    ends = {k + 1 for k, i in enumerate(code) if i.base in _LEAVES | _JUMPS}
    starts = sorted(start for start in {0} | targets | ends if start < len(code))
    index = {start: number for number, start in enumerate(starts)}
    found = []
    for start, end in zip(starts, [*starts[1:], len(code)], strict=True):
        last, target = code[end - 1], goes[end - 1]
        after = [index[target]] if target is not None and target in index else []
        # A branch may also have its condition among the operands (``BRA.U UP0, …``, ``BRA P1, …``).
        first = last.operands[0].lstrip("!") if last.operands else ""
        conditional = first.startswith(("P", "UP")) and first not in ("PT", "UPT")
        stays = last.base not in _LEAVES | _JUMPS or last.guard is not None or conditional
        if stays and end in index:
            after.append(index[end])
        found.append(BasicBlock(start=start, end=end, successors=tuple(dict.fromkeys(after))))
    return tuple(found)


def _loops(graph: Sequence[BasicBlock]) -> tuple[Loop, ...]:
    """Every natural loop; all back edges to one head belong to one loop."""
    before: list[list[int]] = [[] for _ in graph]
    for index, block in enumerate(graph):
        for successor in block.successors:
            before[successor].append(index)
    dominators = _dominators(before)
    bodies: dict[int, set[int]] = {}
    for index, block in enumerate(graph):
        for head in block.successors:
            if dominators[index] >> head & 1:
                body = bodies.setdefault(head, {head})
                todo = [index]
                while todo:
                    at = todo.pop()
                    if at not in body:
                        body.add(at)
                        todo += before[at]
    return tuple(
        Loop(head=head, blocks=tuple(sorted(body))) for head, body in sorted(bodies.items())
    )


def _dominators(before: Sequence[Sequence[int]]) -> list[int]:
    """For each block, a bit mask of the blocks that dominate it; all blocks for dead code.

    before: the predecessors of every block.
    """
    everything = (1 << len(before)) - 1
    found = [1, *[everything] * (len(before) - 1)]
    changed = True
    while changed:
        changed = False
        for index in range(1, len(before)):
            meet = everything
            for other in before[index]:
                meet &= found[other]
            if before[index] and meet | 1 << index != found[index]:
                found[index], changed = meet | 1 << index, True
    return found


# --- the listing -------------------------------------------------------------------------------

_LIMITS = ProcessLimits(cpu_s=60, memory_mb=4096, output_bytes=64 << 20)
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


def disassemble(cubin: Path, toolchain: Toolchain, sandbox: Sandbox) -> tuple[SassFunction, ...]:
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
        why = "".join(done.stderr.strip().splitlines()[:1]) or f"status {done.returncode}"
        raise MachineError(
            phrase("nvdisasm cannot read {name}: {words}", name=cubin.name, words=why)
        )
    if len(done.stdout) >= _LIMITS.output_bytes:
        raise MachineError(
            phrase("{name} holds more machine code than the grader reads", name=cubin.name)
        )
    return parse(done.stdout)


def parse(listing: str) -> tuple[SassFunction, ...]:
    """nvdisasm's listing (``-c -g -gi -gp -hex``) → functions, sorted by name."""
    arch = target[1] if (target := _TARGET.search(listing)) else "unknown"
    starts = list(_SECTION.finditer(listing))
    ends = [*(match.start() for match in starts), len(listing)][1:]
    parts = (
        (match[1], listing[match.end() : end]) for match, end in zip(starts, ends, strict=True)
    )
    return tuple(_function(name, arch, text) for name, text in sorted(parts))


def _function(name: str, arch: str, text: str) -> SassFunction:
    code: list[SassInstruction] = []
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
                # The innermost of inlined calls in the submission, whose own files the build names
                # relative to its folder, and all others in full.
                found = [(normpath(each["file"]), int(each["line"])) for each in sources]
                own = [each for each in found if not each[0].startswith(("/", "../"))]
                file, line = own[0] if own else (None, None)
            places = []
            high = _HIGH_WORD.match("".join(rows[number + 1 : number + 2]))
            operands, target = item["operands"], _TARGET_LABEL.search(item["operands"])
            code.append(
                SassInstruction(
                    address=int(item["address"], 16),
                    opcode=item["opcode"],
                    operands=tuple(_SPACED.split(operands)) if operands else (),
                    guard=item["guard"].strip() if item["guard"] else None,
                    target=target[1] if target else None,
                    file=file,
                    line=line,
                    ptx_line=ptx_line,
                    control=_control(int(high["word"], 16)) if high else None,
                )
            )
    graph = _blocks(code, labels)
    return SassFunction(
        name=name,
        arch=arch,
        entry="STO_CUDA_ENTRY" in text,
        instructions=tuple(code),
        blocks=graph,
        loops=_loops(graph) if len(graph) <= _MOST_BLOCKS else (),
    )


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


def find_tensor_cores(functions: Iterable[SassFunction]) -> tuple[Finding, ...]:
    """A note for every source line that became tensor-core instructions."""
    found: dict[tuple[str | None, int | None], Counter[str]] = {}
    for function in functions:
        for item in function.instructions:
            if item.tensor:
                found.setdefault((item.file, item.line), Counter())[item.opcode] += 1
    return tuple(
        Finding(
            kind=Kind.TENSOR_CORE,
            severity=Severity.NOTE,
            message=phrase(
                "{opcodes} in the machine code runs on tensor cores",
                opcodes=", ".join(sorted(opcodes)),
            ),
            file=file,
            line=line,
            count=sum(opcodes.values()),
        )
        for (file, line), opcodes in found.items()
    )
