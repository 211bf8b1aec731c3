"""Submission → Build: one sandboxed nvcc call.

nvcc compiles a small file of ours that includes the student's unmodified ``sgemm.cu`` and adds an
extern "C" entry point. ``-keep`` leaves the PTX and the cubin beside the host library, so one
call yields all three. Finished builds are kept in the cache folder.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec

from grader.build import cache
from grader.build.diagnostics import (
    ENTRY,
    coloured,
    first_error,
    kernels,
    lacks,
    readable,
)
from grader.errors import Rejected, ToolchainError
from grader.model import (
    Build,
    BuildInfo,
    KernelInfo,
    Record,
    Submission,
    Verdict,
)
from grader.native import cache_folder, cache_limit
from grader.ptx import ptx_text
from grader.sandbox import Completed, Limits, Sandbox
from grader.submission import MAIN, copy_sources
from grader.toolchain import Toolchain

__all__ = ["build", "coloured"]

INCLUDE = Path(__file__).parent / "include"
_ENTRY_SOURCE = f"""#include "{MAIN}"
extern "C" void sgemm_grader_entry(float* sgemm_grader_a, float* sgemm_grader_b,
                                   float* sgemm_grader_c, int sgemm_grader_m,
                                   int sgemm_grader_n, int sgemm_grader_k) {{
  const ::thrust::sgemm_grader::view sgemm_grader_view;
  ::thrust::device_vector<float> sgemm_grader_va(sgemm_grader_view, sgemm_grader_a,
      std::size_t(sgemm_grader_m) * sgemm_grader_k);
  ::thrust::device_vector<float> sgemm_grader_vb(sgemm_grader_view, sgemm_grader_b,
      std::size_t(sgemm_grader_n) * sgemm_grader_k);
  ::thrust::device_vector<float> sgemm_grader_vc(sgemm_grader_view, sgemm_grader_c,
      std::size_t(sgemm_grader_m) * sgemm_grader_n);
  run_custom<float>(sgemm_grader_va, sgemm_grader_vb, sgemm_grader_vc, sgemm_grader_m,
                    sgemm_grader_n, sgemm_grader_k);
}}
"""
# Host code keeps line tables (-g1), so that a crash or a refused call can be pinned to a line.
# Calls into the runtime stay undefined; they bind when first called, so that a call nobody makes
# does no harm.
_FLAGS = (
    "-std=c++17",
    "-lineinfo",
    "--expt-relaxed-constexpr",
    "--extended-lambda",
    "-shared",
    "-cudart=none",
    "-Xcompiler=-fPIC,-g1",
    "-Xlinker=-z,lazy,-z,defs,--warn-unresolved-symbols,--no-demangle",
    "-Xptxas=-v",
    "-keep",
)
_ATTEMPTS = 2  # one more when somebody kills the compiler
_ROOM = 1 << 20  # bytes
_KILLED = re.compile(r"died due to signal 9\b|Killed signal terminated program")  # nvcc, g++
_INTERFACE = "run_custom<float> is not defined in sgemm.cu"
_MANGLED_INTERFACE = "_Z10run_customIfE"
_MISSING_HEADER = re.compile(
    r"^(?P<where>[^\s:]+):(?P<line>\d+):\d+: fatal error: (?P<header>\S+): No such file"
)


class _Card(Record):
    """What a cached build remembers beside its three files."""

    kernels: tuple[KernelInfo, ...]
    command: str
    log: str
    seconds: float


def build(
    submission: Submission,
    toolchain: Toolchain,
    sandbox: Sandbox,
    *,
    arch: str,
    compile_s: float,
    memory_mb: int,
) -> Build:
    """Compile ``submission`` for ``arch`` ("sm_80"), or find the identical build in the cache.

    Raises Rejected with CE (compiler's words in ``build``) or FE (the interface is missing, or
    a library that the lab forbids is included), and ToolchainError when the machine lacks
    something the submission may use.
    """
    folder = cache_folder() / "builds" / _key(submission, toolchain, arch)
    limit = cache_limit()
    cached = _load(folder, arch)
    if cached is not None:
        return cached
    with tempfile.TemporaryDirectory(prefix="sgemm-build-") as name:
        scratch = Path(name).resolve()
        source = scratch / "source"
        copy_sources(submission, source)
        for part in ("entry", "out"):
            (scratch / part).mkdir()
        (scratch / "entry" / ENTRY).write_text(_ENTRY_SOURCE)
        command = _command(toolchain, arch)
        limits = Limits(wall_s=compile_s, memory_mb=memory_mb)
        for _ in range(_ATTEMPTS):
            done = sandbox.run(
                command,
                cwd=source,
                limits=limits,
                readable=_readable(toolchain),
                writable=[scratch],
                env={"TMPDIR": str(scratch / "out")},
            )
            if not _killed(done):
                break
        output = done.stdout + done.stderr
        for hidden in (source, scratch / "out", INCLUDE):
            output = output.replace(f"{hidden}/", "")
        card = _Card(
            kernels=kernels(output),
            command=shlex.join(command),
            log=readable(output),
            seconds=done.seconds,
        )
        if not done.ok and shutil.disk_usage(scratch).free < _ROOM:
            raise ToolchainError(f"{scratch.parent}: no space left to compile in; make room there")
        if not done.ok:
            raise _refused(done, card, toolchain, compile_s)
        if lacks(output, _MANGLED_INTERFACE):
            raise Rejected(Verdict.FE, _INTERFACE, build=_info(card, ok=True))
        _keep(scratch / "out", source, card, folder, limit)
    found = _load(folder, arch)
    if found is None:
        raise ToolchainError(f"the cache folder {folder.parent} loses files: is the disk full?")
    return msgspec.structs.replace(found, cached=False)


def _command(toolchain: Toolchain, arch: str) -> list[str]:
    """The nvcc call, to be run in the folder of the sources."""
    includes = [INCLUDE, Path()]
    if toolchain.cutlass_include is not None:
        includes.append(toolchain.cutlass_include)
    return [
        str(toolchain.nvcc),
        f"-arch={arch}",
        f"-ccbin={toolchain.host_compiler}",
        *_FLAGS,
        "-keep-dir=../out",
        *(f"-I{include}" for include in includes),
        "-o",
        "../out/host.so",
        f"../entry/{ENTRY}",
    ]


def _readable(toolchain: Toolchain) -> list[Path]:
    shown = [*toolchain.roots, INCLUDE]
    if toolchain.cutlass_include is not None:
        shown.append(toolchain.cutlass_include)
    compiler = toolchain.host_compiler.resolve()
    if not compiler.is_relative_to("/usr"):
        shown.append(compiler.parent.parent)
    return shown


def _killed(done: Completed) -> bool:
    """Whether the compiler, or a part of it, was killed by somebody else."""
    parts = not done.ok and not done.timed_out and _KILLED.search(done.stdout + done.stderr)
    return done.killed or bool(parts)


def _refused(done: Completed, card: _Card, toolchain: Toolchain, compile_s: float) -> Exception:
    """Why nvcc failed, as the exception to raise."""
    info = _info(card, ok=False)
    if done.timed_out:
        message = f"compiling took longer than {compile_s:g} s and was stopped"
        return Rejected(Verdict.CE, message, build=info)
    if _killed(done):
        return ToolchainError("the compiler was killed twice; is there enough memory?")
    fatal = re.search(r"^nvcc fatal\s*: (.*)$", card.log, re.MULTILINE)
    if fatal:
        return ToolchainError(f"nvcc: {fatal[1]}")
    error = first_error(card.log)
    missing = _MISSING_HEADER.match(error or "")
    if missing:
        header = missing["header"]
        where = f"{missing['where']}:{missing['line']}"
        if header.startswith(("cute/", "cutlass/")) and toolchain.cutlass_include is None:
            return ToolchainError(
                f"{where} includes <{header}>, and the CuTe headers are not installed: "
                "pip install 'sgemm-grader[cutlass]'"
            )
        if header.startswith("cublas"):
            message = f"{where} includes <{header}>: a submission may not call cuBLAS"
            return Rejected(Verdict.FE, message, build=info)
    if error and error.startswith("../entry/"):  # the student's own part was fine
        message = f"{_INTERFACE} in the way that gemm.cuh declares it"
        return Rejected(Verdict.FE, message, build=info)
    last = "".join(card.log.splitlines()[-1:]) or f"nvcc ended with status {done.returncode}"
    return Rejected(Verdict.CE, error or f"the compiler failed: {last}", build=info)


def _info(card: _Card, *, ok: bool) -> BuildInfo:
    return BuildInfo(
        ok=ok, command=card.command, log=card.log, seconds=card.seconds, kernels=card.kernels
    )


def _key(submission: Submission, toolchain: Toolchain, arch: str) -> str:
    digest = hashlib.sha256(submission.sha256.encode())
    digest.update(msgspec.json.encode([arch, _ENTRY_SOURCE, toolchain.cuda_version]))
    digest.update("\0".join(_command(toolchain, arch)).encode())
    for path in sorted(INCLUDE.rglob("*")):
        if path.is_file():
            digest.update(path.read_bytes())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:24]


def _keep(out: Path, source: Path, card: _Card, folder: Path, limit: int) -> None:
    """Move the results to the cache by rename, so that a reader sees all of them or none."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        ready = Path(name) / "build"
        ready.mkdir()
        stem = ENTRY.removesuffix(".cu")
        ptx = ptx_text(out / f"{stem}.ptx")
        for place in (source, INCLUDE):  # .file "/scratch/source/./sgemm.cu" becomes "sgemm.cu"
            ptx = re.sub(
                rf'^(\s*\.file\s+\d+ "){re.escape(str(place))}/(\./)?', r"\1", ptx, flags=re.M
            )
        (ready / "kernels.ptx").write_bytes(ptx.encode("latin-1"))
        cubin = next(out.glob(f"{stem}*.cubin"))
        shutil.copyfile(cubin, ready / "kernels.cubin")
        shutil.copyfile(out / "host.so", ready / "host.so")
        (ready / "build.json").write_bytes(msgspec.json.encode(card))
        with suppress(OSError):  # another grader was faster; its build is the same
            ready.rename(folder)
    cache.tidy(folder.parent, limit)


def _load(folder: Path, arch: str) -> Build | None:
    cache.touch(folder)
    try:
        card = msgspec.json.decode((folder / "build.json").read_bytes(), type=_Card)
    except (OSError, msgspec.DecodeError):
        return None
    return Build(
        arch=arch,
        ptx=folder / "kernels.ptx",
        cubin=folder / "kernels.cubin",
        host_library=folder / "host.so",
        kernels=card.kernels,
        command=card.command,
        log=card.log,
        log_ansi=coloured(card.log),
        seconds=card.seconds,
        cached=True,
    )
