"""The table of what the recorder (cudart/) refuses: verdict, kind of finding, and sentence.

The recorder names a row by its number, which it is compiled with, and gives the arguments of its
sentence.
"""

from __future__ import annotations

from enum import Enum, unique
from typing import TypeAlias

from grader.base import Kind, Verdict
from grader.record.calls import CALLS, MAX_ALLOCATIONS, MAX_LAUNCHES, MAX_PLAN_BYTES, MAX_TRANSFERS
from ptxsim.findings.names import readable
from ptxsim.limits import MAX_BLOCK, MAX_GRID, MAX_REGISTERS, MAX_THREADS, PORTABLE_CLUSTER
from ptxsim.message import Message, phrase
from ptxsim.records import MOST_ROWS, Refused

_MAX_TEXT = 400  # characters of an argument
_Row: TypeAlias = tuple[Verdict, Kind, Message]


def forbidden(text: str, **args: str) -> _Row:
    return Verdict.FE, Kind.FORBIDDEN_CALL, Message(text=text, args=args)


def wrong(text: str, **args: str) -> _Row:
    return Verdict.RE, Kind.BAD_LAUNCH, Message(text=text, args=args)


def invalid(text: str) -> _Row:
    return wrong(text, error="cudaErrorInvalidValue")


def crashed(text: str) -> _Row:
    return Verdict.RE, Kind.HOST_CRASH, Message(text=text)


@unique
class Refusal(Enum):
    """A reason why a call, or host code as a whole, goes no further."""

    def __init__(self, verdict: Verdict, kind: Kind, sentence: Message) -> None:
        self.verdict = verdict
        self.kind = kind
        self.sentence = sentence

    # What is not supported.
    TEXTURE = forbidden(
        "{function} cannot be used in run_custom: textures, surfaces and CUDA arrays are not "
        "supported; read the matrix through a pointer (const float* __restrict__ or __ldg takes "
        "the same cache)"
    )
    GRAPH = forbidden(
        "{function} cannot be used in run_custom: CUDA graphs are not supported; launch the "
        "kernels directly, in the same order"
    )
    OTHER_CUDA_CALL = forbidden(
        "{function} cannot be used in run_custom: this function of CUDA is not supported; kernel "
        "launches, device memory, streams and events are"
    )
    OTHER_LIBRARY = forbidden(
        "{function} cannot be used in run_custom: kernel launches, device memory, streams and "
        "events of the CUDA runtime are supported, other libraries are not"
    )
    NOT_LOADED = forbidden("the host code cannot be loaded: {error}")
    THREADS = forbidden(
        "threads are not available here: run_custom has one thread and launches kernels"
    )
    ATTRIBUTE = forbidden("{function} with attribute {attribute} is not supported")
    CLUSTER_ATTRIBUTE = forbidden(
        "{function} with the attribute {attribute} is not supported: of clusters only "
        "cudaLaunchAttributeClusterDimension is"
    )
    CARVEOUT_ATTRIBUTE = forbidden(
        "{function} with the attribute {attribute} is not supported: use cudaFuncSetAttribute"
    )
    EVENT_ATTRIBUTE = forbidden(
        "{function} with the attribute {attribute} is not supported: use "
        "cudaLaunchAttributeProgrammaticStreamSerialization"
    )
    LAUNCH_ATTRIBUTE = forbidden(
        "{function} with the attribute {attribute} is not supported: of launch attributes only "
        "those for cooperative, clustered and programmatic launches are"
    )
    LIMIT_TO_GET = forbidden("{function} is supported for cudaLimitStackSize only")
    LIMIT_TO_SET = forbidden(
        "{function} is supported for cudaLimitStackSize and cudaLimitPrintfFifoSize only"
    )
    DRIVER_CALL = forbidden(
        "{function} of the CUDA driver is not supported; of its functions only "
        "cuTensorMapEncodeTiled is"
    )
    DEVICE_TO_HOST = forbidden(
        "{function} from the device to the host cannot be used in run_custom: its kernels run "
        "later, so there is nothing to read yet"
    )
    MANAGED_ACCESS = forbidden(
        "managed memory cannot be read or written by host code here, since kernels run later; pass "
        "values as kernel parameters or copy them with cudaMemcpy"
    )
    MANAGED_VARIABLE = forbidden(
        "{name}: __managed__ variables are not supported; use a __device__ variable and "
        "cudaMemcpyToSymbol"
    )
    MEMSET_WITH_GAPS = forbidden(
        "{function} cannot be used for rows with gaps ({width} bytes at a pitch of "
        "{pitch}): let a kernel do it, or fill the gaps, too"
    )
    TOO_MANY_ROWS = forbidden(
        "{function} is supported for at most {most} rows with gaps", most=str(MOST_ROWS)
    )
    ROWS_FROM_HOST = forbidden(
        "{function} from the host cannot be used for rows with gaps: copy each row, or all of them "
        "without gaps"
    )
    ROWS_OVERLAP = forbidden(
        "{function} of rows with gaps within one part of an allocation is not supported"
    )
    # What CUDA refuses, or leaves undefined.
    OVERLAP = wrong("{function}: source and target overlap, which CUDA leaves undefined")
    GRADERS_MEMORY = wrong("{function}: {operand} belongs to the grader")
    NOT_A_VARIABLE = wrong("{function}: not a __device__ or __constant__ variable")
    FAILED = wrong("{function} returned {error}")
    NO_MEMORY = wrong(
        "{function} of {size} GiB returned {error}", error="cudaErrorMemoryAllocation"
    )
    NOT_A_KERNEL = wrong(
        "{function} returned {error}: not a __global__ function",
        error="cudaErrorInvalidDeviceFunction",
    )
    WRONG_PITCH = wrong(
        "{function} returned {error}: rows of {width} bytes at a pitch of {pitch}",
        error="cudaErrorInvalidPitchValue",
    )
    ROWS_TOO_LARGE = invalid("{function} returned {error}: more than any GPU has")
    FREED_TWICE = invalid("{function} returned {error}: this memory was freed before")
    NOT_AN_ALLOCATION = invalid("{function} returned {error}: not an allocation")
    SOURCE_NOT_DEVICE = invalid("{function} returned {error}: the source is no device address")
    TARGET_NOT_DEVICE = invalid("{function} returned {error}: the target is no device address")
    SOURCE_NOT_HOST = invalid("{function} returned {error}: the source is no host address")
    SOURCE_FREED = invalid(
        "{function} returned {error}: the source of {bytes} bytes is in memory that was freed"
    )
    TARGET_FREED = invalid(
        "{function} returned {error}: the target of {bytes} bytes is in memory that was freed"
    )
    SOURCE_OUTSIDE = invalid(
        "{function} returned {error}: the source of {bytes} bytes is not inside one device "
        "allocation"
    )
    TARGET_OUTSIDE = invalid(
        "{function} returned {error}: the target of {bytes} bytes is not inside one device "
        "allocation"
    )
    OUTSIDE_VARIABLE = invalid(
        "{function} returned {error}: {bytes} bytes at offset {offset} of {name}, which has {size}"
    )
    BAD_TENSOR_MAP = wrong(
        "{function} returned {error}: {why}",
        function="cuTensorMapEncodeTiled",
        error="CUDA_ERROR_INVALID_VALUE",
    )
    # Launches.
    NOT_CONFIGURED = wrong(
        "a kernel called without <<<>>> returned {error}", error="cudaErrorInvalidConfiguration"
    )
    EMPTY_GRID = wrong("{error}: kernel {kernel} cannot be launched: the grid {grid} has a zero")
    GRID_TOO_LARGE = wrong(
        "{error}: kernel {kernel} cannot be launched: the grid {grid} exceeds {most}",
        most=str(MAX_GRID),
    )
    EMPTY_BLOCK = wrong("{error}: kernel {kernel} cannot be launched: the block {block} has a zero")
    BLOCK_TOO_LARGE = wrong(
        "{error}: kernel {kernel} cannot be launched: the block {block} exceeds {threads} "
        "threads, or {deep} in z",
        threads=str(MAX_THREADS),
        deep=str(MAX_BLOCK[2]),
    )
    OVER_LAUNCH_BOUND = wrong(
        "{error}: kernel {kernel} cannot be launched: the block {block} exceeds the kernel's "
        "launch bound of {most} threads"
    )
    SHARED_TOO_LARGE = wrong(
        "{error}: kernel {kernel} cannot be launched: {bytes} bytes of shared memory exceed the "
        "{most} that a block can have on {gpu}"
    )
    SHARED_NOT_RAISED = wrong(
        "{error}: kernel {kernel} cannot be launched: {bytes} bytes of dynamic shared memory "
        "exceed the kernel's limit of {most}: raise cudaFuncAttributeMaxDynamicSharedMemorySize "
        "with cudaFuncSetAttribute"
    )
    TOO_MANY_REGISTERS = wrong(
        "{error}: kernel {kernel} cannot be launched: {threads} threads of {registers} registers "
        "exceed the {most} that a block can have",
        most=str(MAX_REGISTERS),
    )
    COOPERATIVE_TOO_LARGE = wrong(
        "{error}: kernel {kernel} cannot be launched: in a cooperative launch all blocks run at "
        "the same time; {fit} blocks fit on the {gpu}, {launched} were launched"
    )
    CLUSTERS_DIFFER = wrong(
        "{error}: kernel {kernel} cannot be launched: its __cluster_dims__ are {own}, the launch "
        "asks for clusters of {cluster}"
    )
    CLUSTER_SIZE = wrong(
        "{error}: kernel {kernel} cannot be launched: a cluster of {cluster} blocks"
    )
    CLUSTER_NOT_PORTABLE = wrong(
        "{error}: kernel {kernel} cannot be launched: clusters of more than {most} blocks, here "
        "{cluster}, need cudaFuncAttributeNonPortableClusterSizeAllowed with cudaFuncSetAttribute",
        most=str(PORTABLE_CLUSTER),
    )
    PART_OF_A_CLUSTER = wrong(
        "{error}: kernel {kernel} cannot be launched: the grid {grid} is no multiple of its "
        "clusters, {cluster}"
    )
    NO_CLUSTERS = wrong(
        "{error}: kernel {kernel} cannot be launched: {gpu} has no clusters of blocks"
    )
    # More than a plan holds.
    NO_KERNEL = Verdict.FE, Kind.BAD_LAUNCH, phrase("run_custom launched no kernel")
    MEMORY_OF_NO_GPU = wrong("run_custom uses more device memory than any GPU has")
    TOO_MANY_LAUNCHES = wrong(
        "run_custom launches more than {most} kernels in one call", most=str(MAX_LAUNCHES)
    )
    TOO_MANY_TRANSFERS = wrong(
        "run_custom makes more than {most} memsets, copies, symbol writes and synchronisations in "
        "one call",
        most=str(MAX_TRANSFERS),
    )
    TOO_MANY_ALLOCATIONS = wrong(
        "run_custom makes more than {most} allocations of device memory in {calls} calls",
        most=str(MAX_ALLOCATIONS),
        calls=str(CALLS),
    )
    RECORD_FULL = wrong(
        "run_custom asks for more than its record can hold in one call: {most} MiB of kernel "
        "names, parameters and data from the host",
        most=str(MAX_PLAN_BYTES >> 20),
    )
    # How host code ends.
    DEVICE_POINTER = crashed(
        "host code crashed with {signal}: it dereferenced a device pointer; only a kernel may read "
        "or write device memory"
    )
    NULL_POINTER = crashed("host code crashed with {signal}: it dereferenced a null pointer")
    CRASHED = crashed("host code crashed with {signal}")
    ABORTED = crashed("host code aborted: a failed assertion or an uncaught exception")
    EXITED = crashed("host code called exit()")
    THREW = crashed("host code threw an exception: {what}")
    THREW_OTHER = crashed("host code threw an exception")
    # What the recorder cannot tell itself.
    KILLED = crashed("host code was ended by {signal}")
    ENDED = crashed("host code ended its process with status {status}")
    CORRUPTED = crashed("host code corrupted the record of its launches: {how}")
    LATE = Verdict.TLE, Kind.HOST_CRASH, phrase("host code did not return within {seconds} s")


_REFUSALS = tuple(Refusal)


def refused(refusal: Refusal, **args: str) -> Refused:
    return Refused(number=_REFUSALS.index(refusal), args=args)


def find_refusal(refused: Refused) -> Refusal | None:
    """The row; None where host code has forged the number or the arguments."""
    found = _REFUSALS[refused.number] if 0 <= refused.number < len(_REFUSALS) else None
    if found and {*found.sentence.places} == {*found.sentence.args, *refused.args}:
        return found
    return None


def refusal_sentence(refused: Refused) -> Message:
    """The sentence of a refusal that ``find_refusal`` finds; its arguments may be forged."""
    args = {}
    for name, text in refused.args.items():
        printable = "".join(char if char.isprintable() else "?" for char in text)
        args[name] = readable(printable)[:_MAX_TEXT]
    return _REFUSALS[refused.number].sentence.given(**args)


def macros() -> tuple[str, ...]:
    """The rows' names in their order, as an option of the recorder's compiler."""
    return (f"-DREFUSALS={','.join(Refusal.__members__)}",)
