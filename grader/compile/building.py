"""Submission → Build: PTX, cubin and host library, in three sandboxed steps (steps.py).

nvcc compiles a small file of ours that includes the student's unmodified file and adds an
extern "C" entry point (entry.py). Finished builds are kept in the cache folder.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from grader.compile import build_cache as cache
from grader.compile.blame import not_defined, refusal
from grader.compile.brought_headers import with_brought_headers
from grader.compile.diagnostics import readable
from grader.compile.elf import Damaged, Elf
from grader.compile.entry import INCLUDE, entry_source
from grader.compile.figures import kernels
from grader.compile.steps import (
    CUBIN,
    LIBRARY,
    PTX,
    Failed,
    TooLarge,
    Workshop,
    assemble,
    commands,
    link,
    translate,
)
from grader.errors import Rejected, ToolchainError
from grader.model import Build, BuildInfo, KernelInfo, Record, Submission, Verdict, phrase
from grader.model.decoding import decode
from grader.problems.problem import Interface
from grader.sandbox.running import Limits, Sandbox
from grader.submission.folder import copy_sources, with_hint
from grader.toolchain.discovery import Toolchain
from grader.toolchain.native import cache_folder, cache_limit
from ptxsim.frontend import LIBRARY_CALLS

_MAX_KERNELS = 1000
_MAX_NAMES = 1 << 20  # characters of all their names


class _Card(Record):
    """What a cached build remembers beside its files."""

    kernels: tuple[KernelInfo, ...]
    command: str
    log: str
    seconds: float


def compile_submission(
    submission: Submission,
    interface: Interface,
    toolchain: Toolchain,
    sandbox: Sandbox,
    *,
    arch: str,
    compile_s: float,
    memory_mb: int,
) -> Build:
    """Compile ``submission`` for ``arch`` ("sm_80"), or find the identical build in the cache.

    ``compile_s`` holds for each step. Raises Rejected with CE (compiler's words in ``build``) or FE
    (the interface is missing, or a library that the lab forbids is included), and ToolchainError
    when the machine lacks something the submission may use.
    """
    limit = cache_limit()
    folder = cache_folder() / "builds" / _key(submission, interface, toolchain, arch)
    cached = _load(folder, arch)
    if cached is not None:
        return cached
    shop = Workshop(
        toolchain=toolchain,
        sandbox=sandbox,
        arch=arch,
        limits=Limits(cpu_s=compile_s, memory_mb=memory_mb),
        interface=interface,
    )
    sources = b"\n".join(submission.contents.values())
    card, files = _made_by(submission, shop, interface.spellings(sources))
    cache.keep(folder, msgspec.json.encode(card), files)
    cache.tidy(folder.parent, limit)
    found = _load(folder, arch)
    if found is None:
        raise ToolchainError(
            phrase(
                "the cache folder {folder} loses files: is the disk full?",
                folder=str(folder.parent),
            )
        )
    return msgspec.structs.replace(found, cached=False)


def _made_by(
    submission: Submission, shop: Workshop, spellings: Sequence[Interface]
) -> tuple[_Card, Mapping[str, bytes]]:
    """The build by the first spelling that works; if none does, what the first comes to."""
    first, *others = spellings
    try:
        return _made(submission, msgspec.structs.replace(shop, interface=first))
    except (Rejected, ToolchainError):
        if others:
            with suppress(Rejected, ToolchainError):
                return _made_by(submission, shop, others)
        raise


def _made(submission: Submission, shop: Workshop) -> tuple[_Card, Mapping[str, bytes]]:
    """The build from scratch: what is said of it, and its files."""
    card = _Card(
        kernels=(),
        command=" && ".join(map(shlex.join, commands(shop.toolchain, shop.arch))),
        log="",
        seconds=0.0,
    )
    source = entry_source(shop.interface, submission.defines)
    entry = with_brought_headers(source, submission, shop.toolchain)
    try:
        translated = translate(shop, partial(copy_sources, submission), entry)
        card = _after(card, translated.output, translated.seconds)
        if _lacks(shop.interface, translated.host_object):
            words = with_hint(not_defined(shop.interface), submission)
            raise Rejected(Verdict.FE, words, build=_info(card, ok=True))
        with ThreadPoolExecutor(max_workers=1) as pool:
            linked = pool.submit(link, shop, translated.host_object)
            cubin = assemble(shop, translated.ptx)
            card = _after(card, cubin.output, cubin.seconds)
            card = msgspec.structs.replace(card, kernels=_kernels(cubin.result, card))
            _refuse_the_drivers_library(cubin.result, card)
            library = linked.result()
    except Failed as failure:
        card = _after(card, failure.output, failure.done.seconds)
        raise refusal(failure, shop, submission, _info(card, ok=False)) from None
    except TooLarge as error:
        card = _after(card, error.output, 0.0)
        raise Rejected(Verdict.CE, error.message, build=_info(card, ok=False)) from None
    # The linker's messages about a successful link do not concern the student.
    card = msgspec.structs.replace(card, seconds=card.seconds + library.seconds)
    return card, {PTX: translated.ptx, CUBIN: cubin.result, LIBRARY: library.result}


def _after(card: _Card, output: str, seconds: float) -> _Card:
    """The card when one more step has ended."""
    log = f"{card.log}\n{readable(output)}".strip()
    return msgspec.structs.replace(card, log=log, seconds=card.seconds + seconds)


def _lacks(interface: Interface, host_object: bytes) -> bool:
    try:
        undefined = Elf(host_object).symbols(undefined=True)
        return any(symbol.name.startswith(interface.mangled) for _, symbol in undefined)
    except Damaged:  # the linker reports it
        return False


def _kernels(cubin: bytes, card: _Card) -> tuple[KernelInfo, ...]:
    try:
        found = kernels(cubin)
    except Damaged as error:
        raise ToolchainError(
            phrase("ptxas makes cubins that the grader cannot read: {why}", why=str(error))
        ) from None
    if len(found) > _MAX_KERNELS or sum(len(kernel.name) for kernel in found) > _MAX_NAMES:
        message = phrase(
            "{count} kernels; a submission has at most {most}, with short names",
            count=len(found),
            most=_MAX_KERNELS,
        )
        raise Rejected(Verdict.CE, message, build=_info(card, ok=False))
    return found


def _refuse_the_drivers_library(cubin: bytes, card: _Card) -> None:
    """Refuse undefined library calls: the build defines every one that nvcc declares."""
    try:
        asked = {symbol.name for _, symbol in Elf(cubin).symbols(undefined=True)}
    except Damaged as error:
        raise ToolchainError(
            phrase("ptxas makes cubins that the grader cannot read: {why}", why=str(error))
        ) from None
    for name in LIBRARY_CALLS:
        if name in asked:
            message = phrase(
                "inline assembly declares {name}; call printf() or assert() instead", name=name
            )
            raise Rejected(Verdict.CE, message, build=_info(card, ok=False))


def _info(card: _Card, *, ok: bool) -> BuildInfo:
    return BuildInfo(
        ok=ok, command=card.command, log=card.log, seconds=card.seconds, kernels=card.kernels
    )


def _key(submission: Submission, interface: Interface, toolchain: Toolchain, arch: str) -> str:
    """Of everything that goes into a build."""
    compiler = toolchain.host_compiler.stat()
    digest = hashlib.sha256(submission.sha256.encode())
    about = [toolchain.cuda_version, compiler.st_size, compiler.st_mtime_ns]
    digest.update(msgspec.json.encode([about, arch, interface, commands(toolchain, arch)]))
    digest.update(msgspec.json.encode(submission.defines) if submission.defines else b"")
    if toolchain.cutlass_include is not None:
        digest.update((toolchain.cutlass_include / "cutlass" / "version.h").read_bytes())
    ours = [*INCLUDE.rglob("*"), *Path(__file__).parent.glob("*.*")]
    for path in sorted(ours):
        if path.is_file():
            digest.update(f"{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:24]


def _load(folder: Path, arch: str) -> Build | None:
    found = cache.find(folder, (PTX, CUBIN, LIBRARY))
    if found is None:
        return None
    try:
        card = decode(found, _Card)
    except msgspec.DecodeError:
        return None
    return Build(
        arch=arch,
        ptx=folder / PTX,
        cubin=folder / CUBIN,
        host_library=folder / LIBRARY,
        kernels=card.kernels,
        command=card.command,
        log=card.log,
        seconds=card.seconds,
        cached=True,
    )
