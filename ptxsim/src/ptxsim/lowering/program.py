"""A kernel and the functions it calls → one packed program for the engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ptxsim.engine import Engine
from ptxsim.engine_header import ARRAY, INSTRUCTION, PRESET, PROGRAM
from ptxsim.frontend.records import Instruction, PtxModule
from ptxsim.lowering import operation as ops
from ptxsim.lowering.basic_blocks import basic_blocks, mark_questions, mark_results
from ptxsim.lowering.called_functions import (
    reachable_functions,
    recursive,
    refuse_too_many,
    too_much,
)
from ptxsim.lowering.control_flow import Slots, TooDeep, ranks, reachable
from ptxsim.lowering.lower import Lowering
from ptxsim.lowering.memory_layout import LocalMemory, MemoryLayout, too_large
from ptxsim.lowering.rules import RULES
from ptxsim.lowering.shared_arrays import (
    ANY,
    SharedArrayInfo,
    accessible,
    align_up,
    element_sizes,
    extern_of,
)
from ptxsim.text import phrase

_LEAVES = {"ret", "exit"}
_CALLS = {"call", "call.recursive"}
OUT = -1  # in EngineProgram.after
_MAX_BLOCKS = 4096
_MOST_PREDICATES = (1 << 15) - 1  # what an instruction's guard can name


@dataclass(frozen=True)
class EngineProgram:
    """One kernel as the engine takes it. Every run makes its own instance, which counts."""

    packed: np.ndarray  # of PROGRAM
    keep: tuple[np.ndarray, ...]  # what ``packed`` points into
    length: int
    locations: list[int]  # per instruction: index into PtxModule.locations, -1: none
    rows: np.ndarray  # per instruction: line of the PTX text, 0: none
    flops: np.ndarray  # per instruction, per lane
    head: np.ndarray  # per instruction: index of its basic block's head
    # By head of a basic block: the heads that may follow, OUT where lanes may end or return.
    after: dict[int, list[int]]
    guarded: np.ndarray  # per instruction: has a guard
    widths: np.ndarray  # per instruction: bytes that a lane moves, 0: none
    spaces: np.ndarray  # per instruction: space of a memory access, -1: none
    arrays: list[SharedArrayInfo]
    externs: tuple[str, ...]  # as in SharedMemory
    extern_of: np.ndarray  # per instruction: which of them, as extern_of has it; 0: unknown
    extern_elements: dict[int, int]  # by extern_of's numbers: bytes of the narrowest access
    elements: list[int]  # of each of them: bytes, 0: not known
    split_by_index: bool  # how the parts of arrays are named
    entries: list[int]  # where its functions begin
    calls: Mapping[int, Sequence[int]]  # by such a place: the calls that lead there
    locals: list[LocalMemory]
    param_bytes: int  # of the kernel's parameter block
    sources: list[Instruction | None]  # per instruction: the PTX instruction it came from
    first_uses: dict[int, Instruction]  # by never_set instruction: what reads its register first
    synchronises: bool  # some access to global memory is atomic, volatile, relaxed or the like


@dataclass(frozen=True)
class Builder:
    """Builds the programs of one module."""

    module: PtxModule
    globals: Mapping[str, int]
    engine: Engine
    shared_cell: int
    global_cell: int

    def build(self, kernel: str) -> EngineProgram:
        """Raises UnsupportedInstruction."""
        functions = reachable_functions(self.module, kernel)
        refuse_too_many(functions)
        layout = MemoryLayout(self.module, functions, self.globals)
        calling_themselves = recursive(functions)
        code: list[ops.Operation] = []
        labels: dict[str, int] = {}
        slots = Slots()
        reach: list[int] = []  # by rank: which ranks may run later, as bits
        after: dict[int, list[int]] = {}
        predicates = 0
        for function in functions:
            low = Lowering(
                function,
                self.engine.shapes,
                layout.symbols(function),
                RULES,
                f"{function.name}/",
                slots.registers,
                predicates,
            )
            first_predicate = predicates
            part, part_labels, blocks = basic_blocks(low.run(), function.name)
            part[0].operands[1] = layout.stack_bytes(function)
            slots.registers, predicates = low.registers, low.predicates
            if predicates > _MOST_PREDICATES:
                raise too_large(kernel, phrase("predicates"))
            base = len(reach)
            if base + len(blocks) > _MAX_BLOCKS:
                raise too_much(function, base + len(blocks), _MAX_BLOCKS, phrase("basic blocks"))
            try:
                rank, loops = ranks(blocks)
            except TooDeep as error:
                nested = phrase("loops in loops")
                raise too_much(function, error.depth, error.depth - 1, nested) from None
            mark_questions(part, blocks, loops, entry=function.entry)
            mark_results(part, blocks)
            reach += [0] * len(blocks)
            for block, place, later in zip(blocks, rank, reachable(blocks), strict=True):
                part[block.start].imm = base + place
                reach[base + place] = _by_rank(later, rank) << base
            labels |= {name: len(code) + at for name, at in part_labels.items()}
            for block in blocks:
                following = [len(code) + blocks[each].start for each in block.successors]
                leaves = not following or part[block.end - 1].name in _LEAVES
                after[len(code) + block.start] = [*following, OUT] if leaves else following
            frame = layout.frames[function.name]
            frame.predicates = (first_predicate, predicates)
            slots.assign(part, blocks, frame)
            code += part
            _mark_recursion(part, function.name, calling_themselves)
        return self._pack(code, labels, layout, slots, reach, after, predicates, kernel)

    def _pack(
        self,
        code: list[ops.Operation],
        labels: dict[str, int],
        layout: MemoryLayout,
        slots: Slots,
        reach: list[int],
        after: dict[int, list[int]],
        predicates: int,
        kernel: str,
    ) -> EngineProgram:
        slots.finish()
        pool: list[int] = []
        rows: list[tuple[object, ...]] = []
        calls: dict[int, list[int]] = {}
        names = self.engine.operations
        for operation in code:
            operands = [slots.place(o) for o in operation.operands]
            imm = operation.imm
            place = -1
            if operation.name == "brx":
                place, imm = len(pool), len(operation.labels)
                pool += [labels[name] for name in operation.labels]
            elif operation.extra or (operation.outputs and not operation.flags & ops.OWN_TAINT):
                place = len(pool)
                pool += _taint_lists(operation, slots)
                if operation.extra:
                    imm = len(pool) - place
                    pool += [slots.place(o) for o in operation.extra]
            if operation.label is not None:
                target = operation.label if operation.label in labels else f"{operation.label}/"
                imm = labels[target]
            if operation.name in _CALLS:
                calls.setdefault(imm, []).append(len(rows))
            if operation.name.endswith(".recursive"):
                frame = layout.frames[str(operation.label)]
                wide = tuple(2 * w for w in frame.wide)
                narrow = tuple(slots.narrow_base + n for n in frame.narrow)
                operands = [*wide, *narrow, *frame.predicates, *frame.local]
            guard = -1 if operation.guard is None else operation.guard.number
            rows.append((
                names[operation.name], (operands + [-1] * 8)[:8], place, imm, guard,
                operation.negate, operation.width, operation.vec, operation.space,
                operation.flags, operation.dwidth,
            ))  # fmt: skip
        packed = np.array(rows, INSTRUCTION)
        pool_array = np.array(pool or [0], np.int32)
        constants = np.array(slots.presets(), PRESET)
        special = np.array(slots.specials(), np.int32)
        shared = layout.shared
        arrays = np.array([(a.start, a.size) for a in shared.arrays], ARRAY)
        functions = list(layout.functions.values())
        masks = accessible(functions, shared)
        own_arrays = np.array([masks.get(id(o.source), ANY) for o in code], np.uint64)
        externs = extern_of(functions, shared)
        extern_arrays = np.array([externs.get(id(o.source), 0) for o in code], np.uint8)
        private = np.array(layout.private, ARRAY)
        row = (len(reach) + 31) // 32 * 4
        later = np.frombuffer(b"".join(r.to_bytes(row, "little") for r in reach), np.uint32)
        struct = np.array((
            packed.ctypes.data, len(packed), pool_array.ctypes.data, len(pool_array),
            constants.ctypes.data, len(constants), special.ctypes.data, arrays.ctypes.data,
            len(arrays), private.ctypes.data, len(private), later.ctypes.data, len(reach),
            slots.count, max(predicates, 1), labels[f"{kernel}/"],
            align_up(layout.local_bytes, 16), shared.end, self.shared_cell,
            self.global_cell, shared.reserved_bytes, own_arrays.ctypes.data,
            extern_arrays.ctypes.data, len(shared.externs) if externs else 0,
        ), PROGRAM)  # fmt: skip
        head, at = np.zeros(len(code), np.int64), 0
        for index, operation in enumerate(code):
            at = index if operation.name == "block" else at
            head[index] = at
        return EngineProgram(
            packed=struct,
            keep=(
                *(packed, pool_array, constants, special, arrays, private, later, own_arrays),
                extern_arrays,
            ),
            length=len(code),
            locations=[o.source.loc if o.source is not None else -1 for o in code],
            rows=np.array([o.source.row if o.source is not None else 0 for o in code]),
            flops=np.array([o.flops for o in code], np.int64),
            head=head,
            after=after,
            guarded=np.array([o.guard is not None for o in code]),
            widths=np.array([o.width * o.vec for o in code]),
            spaces=np.array([o.space if o.width else -1 for o in code]),
            arrays=shared.arrays,
            externs=shared.externs,
            extern_of=extern_arrays,
            extern_elements=_element_bytes(code, externs),
            elements=element_sizes(functions, shared, masks),
            split_by_index=self.module.split_by_index,
            entries=sorted(labels[f"{function.name}/"] for function in functions),
            calls=calls,
            locals=layout.locals,
            param_bytes=layout.param_bytes,
            sources=[o.source for o in code],
            synchronises=any(
                o.flags & ops.SYNCHRONISES and o.space in (ops.GLOBAL, ops.GENERIC) for o in code
            ),
            first_uses={at: o.first_use for at, o in enumerate(code) if o.first_use is not None},
        )


def _element_bytes(code: Sequence[ops.Operation], externs: Mapping[int, int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for operation in code:
        number = externs.get(id(operation.source))
        if number and operation.name in {"ld", "st"}:
            found[number] = min(found.get(number, operation.width), operation.width)
    return found


def _by_rank(blocks: int, rank: list[int]) -> int:
    """A set of blocks, as bits by their index, as bits by their rank."""
    packed = np.frombuffer(blocks.to_bytes(len(rank) // 8 + 1, "little"), np.uint8)
    by_rank = np.zeros(len(rank), np.uint8)
    by_rank[rank] = np.unpackbits(packed, bitorder="little")[: len(rank)]
    return int.from_bytes(np.packbits(by_rank, bitorder="little").tobytes(), "little")


def _mark_recursion(code: list[ops.Operation], function: str, recursive: set[str]) -> None:
    """Functions that can call themselves save their frame when called, restore it on return."""
    for operation in code:
        if operation.name == "call" and operation.label in recursive:
            operation.name = "call.recursive"
        elif operation.name == "ret" and function in recursive:
            operation.name, operation.label = "ret.recursive", function


def _taint_lists(operation: ops.Operation, slots: Slots) -> list[int]:
    """[outputs…, inputs…, predicate outputs…, predicate inputs…], each behind its length."""
    written, read = ops.outputs(operation), ops.inputs(operation)
    guard: list[ops.Operand] = [operation.guard] if operation.guard is not None else []
    parts = (
        [slots.place(o) for o in written if isinstance(o, ops.Register)],
        [slots.place(o) for o in read if isinstance(o, ops.Register)]
        if operation.name[:4] != "selp"
        else [slots.place(o) for o in read if not isinstance(o, ops.Predicate)],
        [o.number for o in written if isinstance(o, ops.Predicate)],
        [o.number for o in [*read, *guard] if isinstance(o, ops.Predicate)],
    )
    return [value for part in parts for value in (len(part), *part)]
