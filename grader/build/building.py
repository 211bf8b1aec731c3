"""Submission → Build: PTX, cubin and host library, in three sandboxed steps (steps.py).

nvcc compiles a small file of ours that includes the student's unmodified file and adds an
extern "C" entry point (entry.py). Finished builds are kept in the cache folder.
"""

import hashlib
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from grader import base
from grader.build import cache, steps
from grader.build.blame import not_defined, refusal
from grader.build.cubin import Damaged, Elf, kernels
from grader.build.diagnostics import readable
from grader.build.entry import INCLUDE, entry_source, strip_comments, with_brought_headers
from grader.build.toolchain import Toolchain
from grader.labs import Limits, Submission, copy_sources, with_hint
from grader.problems import Interface
from grader.sandbox import ProcessLimits, Sandbox
from ptxsim import LIBRARY_CALLS
from ptxsim.plan import Record
from ptxsim.text import phrase

_FILES = (steps.PTX, steps.SECOND, steps.CUBIN, steps.LIBRARY)
# A word between the captures and the parameters of a lambda: __device__, or a macro for it.
_ANNOTATED = re.compile(rb"\]\s*[A-Za-z_]")
_MAX_KERNELS = 1000
_MAX_NAMES = 1 << 20  # characters of all their names


class Build(Record):
    """Output of nvcc for one submission, which no document has."""

    arch: str  # e.g. "sm_80"
    ptx: Path  # with line info
    second_ptx: Path  # of the same device code by nvcc -G, unoptimised; empty if there is none
    cubin: Path
    host_library: Path  # the host function, linked against no CUDA runtime
    info: base.BuildInfo


def compile_submission(
    submission: Submission,
    interface: Interface,
    toolchain: Toolchain,
    sandbox: Sandbox,
    *,
    arch: str,
    limits: Limits,
    ahead: Callable[[bytes], object] = lambda _ptx: None,
) -> Build:
    """Compile ``submission`` for ``arch`` ("sm_80"), or find the identical build in the cache.

    ``limits`` hold for each step. ``ahead`` gets the PTX before the build is complete; what it
    raises is lost. Raises Rejected with CE (compiler's words in ``build``) or FE (the interface is
    missing, or a library that the lab forbids is included), and ToolchainError when the machine
    lacks something the submission may use.
    """
    limit = base.cache_limit()
    sources = b"\n".join(submission.contents.values())
    settings = steps.BuildSettings(
        toolchain=toolchain,
        sandbox=sandbox,
        arch=arch,
        limits=ProcessLimits(cpu_s=limits.compile_s, memory_mb=limits.memory_mb),
        interface=interface,
        lambdas=_ANNOTATED.search(strip_comments(submission)) is not None,
        ahead=ahead,
    )
    folder = base.cache_folder() / "builds" / _key(submission, settings)
    cached = _load(folder, arch)
    if cached is not None:
        return cached
    info, files = _made_by(submission, settings, interface.spellings(sources))
    cache.keep(folder, msgspec.json.encode(info), files)
    cache.tidy(folder.parent, limit)
    found = _load(folder, arch)
    if found is None:
        lost = phrase("the cache folder {folder} loses files: is the disk full?")
        raise base.ToolchainError(lost.given(folder=str(folder.parent)))
    return found


def _made_by(
    submission: Submission, settings: steps.BuildSettings, spellings: Sequence[Interface]
) -> tuple[base.BuildInfo, Mapping[str, bytes]]:
    """The build by the first spelling that works; if none does, what the first comes to."""
    first, *others = spellings
    try:
        return _made(submission, msgspec.structs.replace(settings, interface=first))
    except (base.Rejected, base.ToolchainError):
        if others:
            with suppress(base.Rejected, base.ToolchainError):
                return _made_by(submission, settings, others)
        raise


def _made(
    submission: Submission, settings: steps.BuildSettings
) -> tuple[base.BuildInfo, Mapping[str, bytes]]:
    """The build from scratch: what is said of it, and its files."""
    command = " && ".join(map(shlex.join, steps.commands(settings).values()))
    info = base.BuildInfo(ok=False, command=command, log="", seconds=0.0, kernels=())
    source = entry_source(settings.interface, submission.defines)
    entry = with_brought_headers(source, submission, settings.toolchain)
    try:
        translated = steps.translate(settings, partial(copy_sources, submission), entry)
        info = _after(info, translated.output, translated.seconds)
        if _lacks(settings.interface, translated.files[steps.OBJECT]):
            words = with_hint(not_defined(settings.interface), submission)
            info = msgspec.structs.replace(info, ok=True)
            raise base.Rejected(base.Verdict.FE, words, build=info)
        with ThreadPoolExecutor(max_workers=2) as pool:
            pool.submit(settings.ahead, translated.files[steps.PTX])
            linked = pool.submit(steps.link, settings, translated.files[steps.OBJECT])
            assembled = steps.assemble(settings, translated.files[steps.PTX])
            info = _after(info, assembled.output, assembled.seconds)
            info = _with_kernels(info, assembled.files[steps.CUBIN])
            library = linked.result()
    except steps.StepFailed as failure:
        info = _after(info, failure.output, failure.done.seconds)
        raise refusal(failure, settings, submission, info) from None
    except steps.TooLarge as error:
        info = _after(info, error.output, 0.0)
        raise base.Rejected(base.Verdict.CE, error.message, build=info) from None
    # The linker's messages about a successful link do not concern the student.
    seconds = info.seconds + library.seconds
    info = msgspec.structs.replace(info, ok=True, seconds=seconds, arch=settings.arch)
    files = translated.files | assembled.files | library.files
    return info, {name: files[name] for name in _FILES}


def _after(info: base.BuildInfo, output: str, seconds: float) -> base.BuildInfo:
    """The build when one more step has ended."""
    log = f"{info.log}\n{readable(output)}".strip()
    return msgspec.structs.replace(info, log=log, seconds=info.seconds + seconds)


def _lacks(interface: Interface, host_object: bytes) -> bool:
    try:
        undefined = Elf(host_object).symbols(undefined=True)
        return any(symbol.name.startswith(interface.mangled) for _, symbol in undefined)
    except Damaged:  # the linker reports it
        return False


def _with_kernels(info: base.BuildInfo, cubin: bytes) -> base.BuildInfo:
    """The build with the cubin's kernels. Raises Rejected for too many of them, and for undefined
    library calls: the build defines every one that nvcc declares."""
    try:
        found = kernels(cubin)
        asked = {symbol.name for _, symbol in Elf(cubin).symbols(undefined=True)}
    except Damaged as error:
        raise base.ToolchainError.saying(
            "ptxas makes cubins that the grader cannot read: {why}", why=str(error)
        ) from None
    if len(found) > _MAX_KERNELS or sum(len(kernel.name) for kernel in found) > _MAX_NAMES:
        message = phrase(
            "{count} kernels; a submission has at most {most}, with short names",
            count=len(found),
            most=_MAX_KERNELS,
        )
        raise base.Rejected(base.Verdict.CE, message, build=info)
    info = msgspec.structs.replace(info, kernels=found)
    if name := next((name for name in LIBRARY_CALLS if name in asked), None):
        message = phrase(
            "inline assembly declares {name}; call printf() or assert() instead", name=name
        )
        raise base.Rejected(base.Verdict.CE, message, build=info)
    return info


def _key(submission: Submission, settings: steps.BuildSettings) -> str:
    """Hash everything that goes into a build."""
    toolchain = settings.toolchain
    compiler = toolchain.host_compiler.stat()
    about = [toolchain.cuda_version, compiler.st_size, compiler.st_mtime_ns, settings.arch]
    about += [settings.interface, submission.sha256, submission.defines, steps.commands(settings)]
    digest = hashlib.sha256(msgspec.json.encode(about))
    if toolchain.cutlass_include is not None:
        digest.update((toolchain.cutlass_include / "cutlass" / "version.h").read_bytes())
    for path in sorted([*INCLUDE.rglob("*"), *Path(__file__).parent.glob("*.*")]):
        if path.is_file():
            digest.update(f"{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:24]


def _load(folder: Path, arch: str) -> Build | None:
    found = cache.find(folder, _FILES)
    if found is None:
        return None
    try:
        info = base.decode(found, base.BuildInfo)
    except msgspec.DecodeError:
        return None
    ptx, second, cubin, library = (folder / name for name in _FILES)
    return Build(
        arch=arch, ptx=ptx, second_ptx=second, cubin=cubin, host_library=library, info=info
    )
