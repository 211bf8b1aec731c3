"""Records of disassembled code: instructions with their control bits, blocks, loops, functions."""

from __future__ import annotations

import re

from grader.model import Record

_SPACED = re.compile(r"\s*,\s*")
_MEMORY_BITS = re.compile(r"(?:U?S?)(8|16|32|64|128|256)")
_TENSOR = re.compile(r"(?:[HIDBQO]|OMX)MMA|(?:[HIBQ])GMMA|UTC\w*MMA")
_WARP_SHAPE = re.compile(r"(8|16)(8)(4|8|16)")
_GROUP_SHAPE = re.compile(r"(64)x(\d+)x(\d+)")
_MATRICES = re.compile(r"(?:LDSM|STSM)\.16\.MT?88(?:\.([24]))?")
_MATRIX_BYTES = 4  # of a matrix of 8 by 8 halves, for each lane
_WARPGROUP = 4  # warps
_TYPE_BYTES = {"f16": 2, "bf16": 2, "tf32": 4}
# The class of an opcode is the first whose pattern matches it, modifiers aside.
_KINDS = (
    ("BAR", re.compile(r"BAR")),
    ("convert", re.compile(r"[IF]2[IFP]\w*|FRND")),
    (
        "integer",
        re.compile(
            r"U?(?:V?I(?:ADD|MAD|MUL|SETP|MNMX|ABS|DP|SCADD)\w*|VIADD\w*|LEA|P?LOP\w*|SHF|SH[LR]|BF[EI]|"
            r"BMSK|BREV|FLO|POPC|SGXT|VABSDIFF\w*)"
        ),
    ),
    (
        "move",
        re.compile(r"U?MOV\w*|U?SEL|FSEL|U?PRMT|CS2U?R|S2U?R|[RP]2(?:[RP]|UR)|SHFL|VOTEU?|U?LDCU?"),
    ),
    (
        "branch",
        re.compile(r"BRXU?|BRA|JM[PX]|CALL|RET|EXIT|BREAK|BSSY|BSYNC|BMOV|WARPSYNC|YIELD|KILL"),
    ),
    (
        "synchronise",
        re.compile(
            r"MEMBAR|DEPBAR|LDGDEPBAR|ERRBAR|CCTL|SYNCS|NANOSLEEP|FENCE|WARPGROUP|UCGABAR_\w+|"
            r"UTMACMDFLUSH|ELECT"
        ),
    ),
    (
        "float",
        re.compile(
            r"F(?:ADD|MUL|SETP|SET|MNMX|CHK)\w*|MUFU|H(?:ADD2|MUL2|FMA2)\w*|D(?:ADD|MUL|FMA)"
        ),
    ),
)


class Control(Record):
    """The scheduling fields of a 128-bit instruction (Volta and later), bits 105 to 125."""

    stall: int  # cycles the warp waits before its next instruction may issue
    write_barrier: int | None  # scoreboard freed when the result is there
    read_barrier: int | None  # scoreboard freed when the operands are read
    waits: tuple[int, ...]  # scoreboards waited for before issue


class Product(Record):
    """What a tensor-core instruction multiplies."""

    kind: str  # type of the inputs: "f16", "bf16", "tf32"
    sums: str  # type of the sums: "f32", "f16"
    flops: int  # of one warp that executes it
    by_warpgroup: bool  # four warps execute it together: HGMMA
    columns: int  # of the result: 8 of HMMA
    shared_bytes: int  # that it reads from shared memory, for one of the warps


class Instruction(Record):
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
        """Of HMMA and HGMMA, without sparsity; None for all others."""
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
        if base in ("FFMA", "FFMA2"):
            return base
        if base in ("LDS", "LDG", "STS", "STG", "LDL", "STL", "LDGSTS", "LD", "ST"):
            return f"{base}.{self.bits}"
        if base in ("LDSM", "STSM"):
            return f"{base}.{self.bits // 8 // _MATRIX_BYTES}"
        if base in ("UBLKCP", "UTMALDG", "UTMASTG") or base.startswith(("ATOM", "RED")):
            return base
        if self.tensor:
            return base
        if base == "HFMA2" and self.flops:
            return base
        if base == "IMAD" and ".MOV" in self.opcode:
            return "move"
        for name, pattern in _KINDS:
            if pattern.fullmatch(base):
                return name
        return "other"


class Block(Record):
    """Instructions start ≤ i < end of a function, entered at the top and left at the bottom."""

    start: int
    end: int
    successors: tuple[int, ...]  # block indices


class Loop(Record):
    """A natural loop: ``head`` dominates ``blocks`` and is branched back to."""

    head: int
    blocks: tuple[int, ...]  # sorted, with the head


class Function(Record):
    """The code of one kernel or device function."""

    name: str  # mangled
    arch: str  # "sm_90"
    entry: bool  # a kernel, not a device function that stayed a call
    instructions: tuple[Instruction, ...]
    blocks: tuple[Block, ...]
    loops: tuple[Loop, ...]

    def of_block(self, index: int) -> tuple[Instruction, ...]:
        block = self.blocks[index]
        return self.instructions[block.start : block.end]


def split_operands(text: str) -> tuple[str, ...]:
    """``R8, R76, R80.reuse`` → its parts; commas inside brackets do not count."""
    return tuple(_SPACED.split(text)) if text else ()
