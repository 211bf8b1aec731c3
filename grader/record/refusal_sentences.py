"""What the recorder (cudart/) refuses, in the words that it uses.

The recorder writes English text; here a text becomes the message that it is an instance of.
"""

from __future__ import annotations

from grader.model import Message, phrase
from ptxsim.message import recognised

_FAILED = " after "  # joins a sentence and the last call that failed

_SENTENCES = (
    phrase(
        "{function} cannot be used in run_custom: textures, surfaces and CUDA arrays are not "
        "supported; read the matrix through a pointer (const float* __restrict__ or __ldg takes "
        "the same cache)"
    ),
    phrase(
        "{function} cannot be used in run_custom: CUDA graphs are not supported; launch the "
        "kernels directly, in the same order"
    ),
    phrase(
        "{function} cannot be used in run_custom: this function of CUDA is not supported; kernel "
        "launches, device memory, streams and events are"
    ),
    phrase(
        "{function} cannot be used in run_custom: kernel launches, device memory, streams and "
        "events of the CUDA runtime are supported, other libraries are not"
    ),
    phrase("the host code cannot be loaded: {error}"),
    phrase("{function} with attribute {attribute} is not supported"),
    phrase(
        "{function} with the attribute {attribute} is not supported: of clusters only "
        "cudaLaunchAttributeClusterDimension is"
    ),
    phrase("{function} with the attribute {attribute} is not supported: use cudaFuncSetAttribute"),
    phrase(
        "{function} with the attribute {attribute} is not supported: use "
        "cudaLaunchAttributeProgrammaticStreamSerialization"
    ),
    phrase(
        "{function} with the attribute {attribute} is not supported: of launch attributes only "
        "those for cooperative, clustered and programmatic launches are"
    ),
    phrase("{function} is supported for cudaLimitStackSize only"),
    phrase("{function} is supported for cudaLimitStackSize and cudaLimitPrintfFifoSize only"),
    phrase(
        "{function} of the CUDA driver is not supported; of its functions only "
        "cuTensorMapEncodeTiled is"
    ),
    phrase("threads are not available here: run_custom has one thread and launches kernels"),
    phrase(
        "{function} from the device to the host cannot be used in run_custom: its kernels run "
        "later, so there is nothing to read yet"
    ),
    phrase(
        "managed memory cannot be read or written by host code here, since kernels run later; pass "
        "values as kernel parameters or copy them with cudaMemcpy"
    ),
    phrase(
        "{name}: __managed__ variables are not supported; use a __device__ variable and "
        "cudaMemcpyToSymbol"
    ),
    phrase("{function}: source and target overlap, which CUDA leaves undefined"),
    phrase("{function}: {operand} belongs to the grader"),
    phrase("{function}: not a __device__ or __constant__ variable"),
    phrase(
        "{function} cannot be used for rows with gaps ({sizes}): let a kernel do it, or fill "
        "the gaps, too"
    ),
    phrase("{function} is supported for at most {most} rows with gaps"),
    phrase(
        "{function} from the host cannot be used for rows with gaps: copy each row, or all of them "
        "without gaps"
    ),
    phrase("{function} of rows with gaps within one part of an allocation is not supported"),
    phrase("{function} returned {error}: not a __global__ function"),
    phrase("{function} returned {error}: rows of {sizes}"),
    phrase("{function} returned {error}: more than any GPU has"),
    phrase("{function} returned {error}: this memory was freed before"),
    phrase("{function} returned {error}: not an allocation"),
    phrase("{function} returned {error}: the source is no device address"),
    phrase("{function} returned {error}: the target is no device address"),
    phrase("{function} returned {error}: the source is no host address"),
    phrase("{function} returned {error}: the source of {bytes} bytes is in memory that was freed"),
    phrase("{function} returned {error}: the target of {bytes} bytes is in memory that was freed"),
    phrase(
        "{function} returned {error}: the source of {bytes} bytes is not inside one device "
        "allocation"
    ),
    phrase(
        "{function} returned {error}: the target of {bytes} bytes is not inside one device "
        "allocation"
    ),
    phrase(
        "{function} returned {error}: {bytes} bytes at offset {offset} of {name}, which has {size}"
    ),
    phrase("{error}: kernel {kernel} cannot be launched: the grid {grid} has a zero"),
    phrase("{error}: kernel {kernel} cannot be launched: the grid {grid} exceeds {most}"),
    phrase("{error}: kernel {kernel} cannot be launched: the block {block} has a zero"),
    phrase(
        "{error}: kernel {kernel} cannot be launched: the block {block} exceeds 1024 threads, or "
        "64 in z"
    ),
    phrase(
        "{error}: kernel {kernel} cannot be launched: the block {block} exceeds the kernel's "
        "launch bound of {most} threads"
    ),
    phrase(
        "{error}: kernel {kernel} cannot be launched: {bytes} bytes of shared memory exceed the "
        "{most} that a block can have on {gpu}"
    ),
    phrase(
        "{error}: kernel {kernel} cannot be launched: {bytes} bytes of dynamic shared memory "
        "exceed the kernel's limit of {most}: raise cudaFuncAttributeMaxDynamicSharedMemorySize "
        "with cudaFuncSetAttribute"
    ),
    phrase(
        "{error}: kernel {kernel} cannot be launched: {threads} threads of {registers} registers "
        "exceed the 65536 that a block can have"
    ),
    phrase(
        "{error}: kernel {kernel} cannot be launched: in a cooperative launch all blocks run at "
        "the same time; {fit} blocks fit on the {gpu}, {launched} were launched"
    ),
    phrase("{error}: kernel {kernel} cannot be launched: a cluster of {cluster} blocks"),
    phrase(
        "{error}: kernel {kernel} cannot be launched: the grid {grid} is no multiple of its "
        "clusters, {cluster}"
    ),
    phrase("{error}: kernel {kernel} cannot be launched: {gpu} has no clusters of blocks"),
    phrase("run_custom launched no kernel"),
    phrase("run_custom uses more device memory than any GPU has"),
    phrase("run_custom launches more than {most} kernels in one call"),
    phrase(
        "run_custom makes more than {most} memsets, copies, symbol writes and synchronisations in "
        "one call"
    ),
    phrase("run_custom makes more than {most} allocations of device memory in {calls} calls"),
    phrase(
        "run_custom asks for more than its record can hold in one call: {most} MiB of kernel "
        "names, parameters and data from the host"
    ),
    phrase(
        "host code crashed with {signal}: it dereferenced a device pointer; only a kernel may read "
        "or write device memory"
    ),
    phrase("host code crashed with {signal}: it dereferenced a null pointer"),
    phrase("host code crashed with {signal}"),
    phrase("host code aborted: a failed assertion or an uncaught exception"),
    phrase("host code called exit()"),
    phrase("host code threw an exception: {what}"),
    phrase("host code threw an exception"),
    phrase("host code was ended by {signal}"),
    phrase("host code ended its process with status {status}"),
    phrase("host code did not return within {seconds} s"),
    phrase("host code corrupted the record of its launches: {how}"),
)


def refusal_sentence(text: str) -> Message:
    head, _, failed = text.partition(_FAILED)
    if failed and text.startswith(("host code", "run_custom launched")):
        what = recognised(head, _SENTENCES)
        return phrase("{what} after {failure}", what=what, failure=failed)
    return recognised(text, _SENTENCES)
