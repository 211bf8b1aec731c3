"""Facts about the text of a kernel: hints why elements may be wrong, tensor cores, foreign code."""

import itertools
import re
from collections.abc import Collection, Iterable, Iterator

import msgspec

from ptxsim.findings.event_table import SENTENCES
from ptxsim.findings.finding import Finding, FindingKind, Severity
from ptxsim.findings.names import plain_name
from ptxsim.findings.reports import instruction_note
from ptxsim.frontend.records import Function, Instruction, PtxModule
from ptxsim.lowering.called_functions import possible_functions
from ptxsim.lowering.shared_arrays import lay_out_shared, reads_of_addresses
from ptxsim.plan.records import Launch, Plan
from ptxsim.text import Message, phrase, verbatim

_NAME = re.compile(r"[\w$%]+")
_NUMBER = re.compile(r"-?(?:0[xX][\da-fA-F]+|[1-9]\d*|0)")
_SHARED_BYTES = 1 << 18  # addresses in shared memory are smaller
_BITS = {"f16": 11, "f16x2": 11, "bf16": 8, "bf16x2": 8}


def hints(module: PtxModule, kernel: str) -> Iterator[Finding]:
    functions = possible_functions(module, kernel)
    for item in _half_sums(functions):
        kind = item.opcode.rpartition(".")[2]
        text = _sentence("HALF_SUMS", instruction=verbatim(item.opcode), bits=_BITS[kind])
        yield instruction_note(module, FindingKind.HINT, text, item)
    yield from _fragment_maps(module, functions)
    if functions[0].name != kernel:
        return
    shared = lay_out_shared(module, functions)
    reads = reads_of_addresses(functions, shared, {"xor", "and", "or", "lop3", "bfe"})
    for item in itertools.islice(filter(_depends_on_the_first_address, reads), 1):
        text = _sentence("BITS_OF_AN_ADDRESS", first=shared.first, target=module.target)
        yield instruction_note(module, FindingKind.HINT, text, item)


def unset_constants(module: PtxModule, kernel: str, given: Collection[str]) -> Iterator[Finding]:
    """A warning for each __constant__ variable that a kernel uses and that has no value, or 0: PTX
    does not tell these apart. given: the names of those that are set."""
    unset = {
        each.name: each
        for each in module.variables
        if each.space == "const" and not each.initial and each.name not in given
    }
    if not unset:
        return
    for item in (item for each in possible_functions(module, kernel) for item in each.instructions):
        for name in {word for text in item.operands for word in _NAME.findall(text)} & set(unset):
            variable = unset.pop(name)
            text = phrase(
                "the kernel uses {name}, {bytes} bytes of __constant__ memory that are all 0: the "
                "source has no other value, and none was given; give --symbol {name}=FILE.npy, or "
                "in Python symbols=dict({name}=array)",
                name=plain_name(name),
                bytes=variable.size,
            )
            note = instruction_note(module, FindingKind.UNINITIALIZED_READ, text, item)
            yield msgspec.structs.replace(note, severity=Severity.WARNING)


def _depends_on_the_first_address(item: Instruction) -> bool:
    """Whether 1024 more in an address may change the result in another way than adding does."""
    name, kind = item.opcode.partition(".")[0], item.opcode.rpartition(".")[2]
    numbers = [int(text, 0) for text in item.operands[-2:] if _NUMBER.fullmatch(text)]
    upper = numbers[-1] % _SHARED_BYTES // 1024 if numbers else 0
    match name, len(numbers):
        case "bfe", 2:
            return 1 << sum(numbers) > 1024
        case "and", 1:
            return upper not in {0, _SHARED_BYTES // 1024 - 1}
        case "or" | "xor", 1:
            return upper != 0
    return name != "or" or kind == "b32"  # by or.b64, descriptors are put together


def _half_sums(functions: Iterable[Function]) -> Iterator[Instruction]:
    for function in functions:
        for item in function.instructions:
            kind = item.opcode.rpartition(".")[2]
            if item.opcode.startswith(("fma.", "add.")) and kind in _BITS:
                yield item


def _fragment_maps(module: PtxModule, functions: Iterable[Function]) -> Iterator[Finding]:
    """One note for each form of instruction whose operands are spread over the lanes of a warp."""
    told = set()
    for item in (each for function in functions for each in function.instructions):
        if item.opcode not in told:
            told.add(item.opcode)
            if text := _fragment_map(item.opcode):
                yield instruction_note(module, FindingKind.HINT, text, item)


def _fragment_map(opcode: str) -> Message | None:
    name, *mods = opcode.split(".")
    instruction, shape = verbatim(opcode), _SHAPE.search(opcode)
    if name in {"ldmatrix", "stmatrix"}:
        along, across = phrase("row"), phrase("columns")
        if "trans" in mods:
            along, across = phrase("column"), phrase("rows")
        return _sentence("ROWS_BY_LANE", instruction=instruction, along=along, across=across)
    if shape is None:
        return None
    if name == "wgmma":
        return _sentence("WGMMA_FRAGMENT", instruction=instruction)
    depth, each = int(shape[1]), next((n for m, n in _PER_REGISTER.items() if m in mods), 2)
    at = {1: "t", 2: "2·t, 2·t + 1"}.get(each, f"{each}·t, …, {each}·t + {each - 1}")
    if depth == 16 * each:
        return None
    if depth == 4 * each:
        return _sentence("SHORT_FRAGMENT", instruction=instruction, at=at)
    return _sentence("FRAGMENT", instruction=instruction, at=at, half=depth // 2)


def _sentence(name: str, **args: int | str | Message) -> Message:
    """The sentence of this name in the table of events."""
    words = SENTENCES[name]
    assert isinstance(words, str)
    return Message(text=words).given(**args)


# Elements of A that a register holds, by type; two of all others.
_PER_REGISTER = {"tf32": 1, "f64": 1, "s8": 4, "u8": 4, "s4": 8, "u4": 8, "b1": 32}
_SHAPE = re.compile(r"^(?:mma\.\S*\.m16n8|wgmma\.mma_async\.\S*\.m64n\d+)k(\d+)\.")
_TENSOR_CORE = ("mma.", "wmma.", "wgmma.", "tcgen05.")


def tensor_core_notes(module: PtxModule, plans: Iterable[Plan]) -> list[Finding]:
    operations = [o for plan in plans for o in (*plan.setup, *plan.operations)]
    kernels = {o.kernel for o in operations if isinstance(o, Launch)}
    functions = [f for k in sorted(kernels) for f in possible_functions(module, k)]
    return [
        instruction_note(module, FindingKind.TENSOR_CORE, verbatim(item.opcode), item)
        for function in functions
        for item in function.instructions
        if item.opcode.startswith(_TENSOR_CORE)
    ]


def origins(module: PtxModule) -> dict[str, tuple[str, ...]]:
    """Return, by kernel, the source files that its instructions come from, with those of the
    functions that it may call: a library's may lie in the submission too."""
    by_function = {
        name: {item.loc for item in function.instructions}
        for name, function in module.functions.items()
    }
    found = {}
    for name, function in module.functions.items():
        if not function.entry:
            continue
        places = set().union(*(by_function[f.name] for f in possible_functions(module, name)))
        files: set[str] = set()
        for place in places:
            if place >= 0 and (location := module.locations[place]):
                files.update((location.file, *location.outside))
        found[name] = tuple(sorted(files))
    return found
