"""Shared memory of a kernel: where its arrays lie, and which of them an instruction may access.

Arrays lie where ptxas puts them, one behind the other. So an address past the end of one array is
an address in the next one, and only where it was computed from tells that an access is wrong.
"""

import re
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ptxsim.frontend.records import SIZES, Function, Instruction, PtxModule, Variable

ANY = (1 << 64) - 1  # an instruction that may access every array
_UNKNOWN = 1 << 63  # beside the arrays' bits: a pointer that may have come from anywhere
_MOST_ARRAYS = 63
_MOST_EXTERNS = 8  # limits.hpp has the same
_WORD = re.compile(r"[\w$%.@]+")

# The first target that keeps the first bytes of shared memory for the system, and how many.
_RESERVES_FROM, _SYSTEM_BYTES = 90, 1024
_DYNAMIC_ALIGN = 16  # of the dynamic array, at least
# Where CUDA keeps shared memory for cooperative_groups, and how many bytes the groups may use. What
# it holds when a block begins is not said.
_RESERVED, _RESERVED_BYTES = "%reserved_smem_offset_1", 288

_ACCESSES = {"ld", "ldu", "st", "atom", "red", "wmma", "ldmatrix", "stmatrix"}
_VECTORS = {"v2", "v4", "v8", "x1", "x2", "x4"}
# Results of these are no pointers, whatever was loaded.
_NO_POINTERS = {"mul", "mul24", "shl", "div", "rem", "setp", "set", "popc", "clz", "bfind"}
_POINTER_TYPES = {kind + bits for kind in "bus" for bits in ("32", "64")}


@dataclass(frozen=True)
class SharedArrayInfo:
    name: str
    start: int  # simulated shared address
    size: int  # bytes; 0 for the dynamic array, whose size the launch gives
    align: int = 1  # bytes
    type: str = ""  # of a variable that is no array: "f32"


@dataclass(frozen=True)
class SharedMemory:
    """Addresses as PTX sees them. Checked with ptxas 13.0 for sm_75 to sm_120: the kernel's own
    arrays come first, then the module's, then those of the functions it calls, each in the order of
    their declarations; arrays that nothing names take no room before the dynamic one."""

    first: int  # address that the program may use
    arrays: list[SharedArrayInfo]  # the dynamic one is the last
    addresses: dict[str, int]
    externs: tuple[str, ...]  # all dynamic ones, which begin at one address or nearly so
    end: int  # where the bytes begin that the launch asks for
    reserved_bytes: int  # of the first array, which holds something when a block begins


def align_up(value: int, to: int) -> int:
    return (value + to - 1) // to * to


def lay_out_shared(module: PtxModule, functions: Sequence[Function]) -> SharedMemory:
    """The shared memory of the kernel that ``functions`` begin with."""
    code = (item for function in functions for item in function.instructions)
    named = {word for item in code for word in _words(*item.operands)}
    kernel, *called = functions
    listed = [kernel.variables, module.variables, *(function.variables for function in called)]
    variables = [v for part in listed for v in part if v.space == "shared" and v.name in named]
    reserved = _RESERVED in named
    base = _SYSTEM_BYTES if reserved or module.target >= _RESERVES_FROM else 0
    arrays: list[SharedArrayInfo] = []
    size = 0
    if reserved:
        arrays.append(SharedArrayInfo(_RESERVED, 0, _RESERVED_BYTES))
    for variable in (v for v in variables if v.size):
        size = align_up(size, variable.align)
        arrays.append(_info(variable, base + size))
        size += variable.size
    dynamic = [v for v in variables if not v.size] or [
        Variable("dynamic shared memory", "shared", 0, 1)
    ]
    starts = [align_up(size, max(v.align, _DYNAMIC_ALIGN)) for v in dynamic]
    arrays.append(_info(dynamic[0], base + min(starts)))
    addresses = {array.name: array.start for array in arrays}
    addresses |= {v.name: base + start for v, start in zip(dynamic, starts, strict=True)}
    externs = tuple(v.name for v in dynamic)
    end, reserved_bytes = base + max(starts), _RESERVED_BYTES * reserved
    return SharedMemory(base, arrays, addresses, externs, end, reserved_bytes)


def _info(variable: Variable, start: int) -> SharedArrayInfo:
    return SharedArrayInfo(variable.name, start, variable.size, variable.align, variable.type)


def accessible(functions: Sequence[Function], shared: SharedMemory) -> dict[int, int]:
    """Map the ``id`` of an instruction to the arrays it may access, as bits: those whose addresses
    its own address was computed from. An instruction that is not in the map may access all."""
    if not 1 < len(shared.arrays) <= _MOST_ARRAYS:
        return {}
    return dict(_computed_from(functions, _bits(shared)))


def extern_of(functions: Sequence[Function], shared: SharedMemory) -> dict[int, int]:
    """Map the ``id`` of an instruction to the one of several ``externs`` from which its address was
    computed, counted from 1. An instruction that is not in the map may access each."""
    if not 1 < len(shared.externs) <= _MOST_EXTERNS:
        return {}
    numbers = {1 << k: k + 1 for k in range(len(shared.externs))}
    bits = dict(zip(shared.externs, numbers, strict=True))
    found = _computed_from(functions, bits)
    return {item: numbers[mask] for item, mask in found if mask in numbers}


def _computed_from(
    functions: Sequence[Function], bits: Mapping[str, int]
) -> Iterator[tuple[int, int]]:
    """The ``id`` of each instruction with an address, and the variables, as ``bits``, that this was
    computed from; none whose address may have come from anywhere."""
    for function in functions:
        origins = _origins(function, bits)
        for item in function.instructions:
            firsts = [_words(text)[:1] for text in item.operands if text[0] == "["]
            mask = 0
            for word in (word for words in firsts for word in words):
                mask |= bits.get(word, origins.get(word, 0))
            if mask and not mask & _UNKNOWN:
                yield id(item), mask


def element_sizes(
    functions: Sequence[Function], shared: SharedMemory, masks: Mapping[int, int]
) -> list[int]:
    """The bytes of an element of each array, as the accesses to it have them; 0: not known.

    PTX declares arrays as bytes. A scalar access tells more than a vector's, by which all types are
    copied; dynamic memory may hold arrays of several types. masks: as from ``accessible``.
    """
    scalars: list[set[int]] = [set() for _ in shared.arrays]
    vectors: list[set[int]] = [set() for _ in shared.arrays]
    alone = len(shared.arrays) == 1
    for item in (item for function in functions for item in function.instructions):
        mods = item.opcode.split(".")
        mask = int("shared" in mods) if alone else masks.get(id(item), 0)
        size = accessed_size(item)
        if size and mask.bit_count() == 1:
            known = vectors if _VECTORS & set(mods) else scalars
            known[mask.bit_length() - 1].add(size)
    return [
        _element_size(array, some or copies)
        for array, some, copies in zip(shared.arrays, scalars, vectors, strict=True)
    ]


def _element_size(array: SharedArrayInfo, sizes: set[int]) -> int:
    if not sizes or (not array.size and len(sizes) > 1):
        return 0
    return min({*sizes, array.align})


def accessed_size(item: Instruction) -> int:
    """The bytes of an element that an access to memory moves; 0: not known."""
    base, *mods = item.opcode.split(".")
    if base not in _ACCESSES:
        return 0
    return 4 if mods[-1] == "tf32" else SIZES.get(mods[-1], 0)


def reads_of_addresses(
    functions: Sequence[Function], shared: SharedMemory, names: Container[str]
) -> Iterator[Instruction]:
    """The instructions of these names that read the bits of an address in shared memory."""
    bits = _bits(shared) if len(shared.arrays) <= _MOST_ARRAYS else {}
    for function in functions:
        origins = _origins(function, bits)
        for item in function.instructions:
            words = _words(*item.operands[1:])
            masks = (bits.get(word, origins.get(word, 0)) for word in words)
            if item.opcode.split(".")[0] in names and any(mask & ~_UNKNOWN for mask in masks):
                yield item


def _bits(shared: SharedMemory) -> dict[str, int]:
    last = len(shared.arrays) - 1
    bits = dict.fromkeys(shared.addresses, 1 << last)
    return bits | {array.name: 1 << k for k, array in enumerate(shared.arrays)}


def _origins(function: Function, bits: Mapping[str, int]) -> dict[str, int]:
    """Map each register to the arrays whose addresses may be part of its value."""
    found: dict[str, int] = defaultdict(int)
    readers: dict[str, list[tuple[str, int]]] = defaultdict(list)  # what is computed from it
    for item in function.instructions:
        name, *mods = item.opcode.split(".")
        if not item.operands or item.operands[0][0] in "[(":
            continue
        targets = [w for w in _words(item.operands[0]) if function.register_type(w) is not None]
        if name in {"ld", "atom"}:
            loaded = _may_be_pointer(function, mods)
            for target in targets:
                found[target] |= _UNKNOWN * loaded
            continue
        for place, text in enumerate(item.operands[1:]):
            factor = name in _NO_POINTERS or (name.startswith("mad") and place < 2)
            for word in _words(text):
                for target in targets:
                    found[target] |= bits.get(word, 0)
                    readers[word].append((target, ~_UNKNOWN if factor else ANY))
    todo = [register for register, mask in found.items() if mask]
    while todo:
        register = todo.pop()
        for target, kept in readers[register]:
            mask = found[target] | (found[register] & kept)
            if mask != found[target]:
                found[target] = mask
                todo.append(target)
    return found


def _may_be_pointer(function: Function, mods: Sequence[str]) -> bool:
    """Whether a load may bring an address of shared memory. The host knows none."""
    if "const" in mods or (function.entry and "param" in mods):
        return False
    return mods[-1] in _POINTER_TYPES


def _words(*texts: str) -> list[str]:
    return [word for text in texts for word in _WORD.findall(text)]
