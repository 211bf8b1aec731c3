"""Whole programs: the student's files and the course's → an executable, in one sandboxed step.

It is linked for ptxsim, or with CUDA's own runtime for a GPU. The executable is as untrusted as its
sources.
"""

import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from grader import base
from grader.build import blame, steps
from grader.build.diagnostics import readable
from grader.build.toolchain import Toolchain
from grader.labs import COMPILED, Limits, NotAFileError, ProgramTask, read
from grader.sandbox import ProcessLimits, Sandbox
from ptxsim import CompileError, EngineError, program_options, stand_in
from ptxsim.plan import Record
from ptxsim.text import phrase

PROGRAM = ".program"  # no hand-in has hidden files
_OUT = "../out"


class WholeBuild(Record):
    program: Path  # beside its sources
    info: base.BuildInfo


def runtime_folder() -> Path:
    """The folder of ptxsim's CUDA runtime. Raises ToolchainError."""
    try:
        return stand_in(base.cache_folder() / "native")
    except (CompileError, EngineError, OSError) as error:
        raise base.ToolchainError.saying(
            "ptxsim's CUDA runtime cannot be compiled: {why}", why=str(error)
        ) from None


def compile_whole(
    task: ProgramTask,
    contents: Mapping[str, bytes],
    folder: Path,
    toolchain: Toolchain,
    sandbox: Sandbox,
    *,
    arch: str,
    limits: Limits,
    on_gpu: bool = False,
) -> WholeBuild:
    """contents: of all files by name. folder: an empty one, for sources and program.

    Raises Rejected (CE) and ToolchainError.
    """
    source, out = folder / "source", folder / "out"
    for name, content in contents.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(content)
    out.mkdir()
    named = (*task.file.files.student, *task.file.files.course)
    wanted = task.file.build
    shown = [*toolchain.shown, source]
    command = [str(toolchain.nvcc), f"-ccbin={toolchain.host_compiler}"]
    if on_gpu:
        command += ["-lineinfo", f"-arch={arch}"]
    else:
        shown.append(library := runtime_folder())
        command += program_options(arch, library)
    command += [f"-std={wanted.std}", *wanted.options]
    command += [name for name in named if PurePosixPath(name).suffix in COMPILED]
    command += [*(f"-l{name}" for name in wanted.libraries), "-o", f"{_OUT}/{PROGRAM}"]
    done = sandbox.run(
        command,
        cwd=source,
        limits=ProcessLimits(cpu_s=limits.compile_s, memory_mb=limits.memory_mb),
        readable=shown,
        writable=[out],
        env={"TMPDIR": str(out)},
    )
    log = readable((done.stdout + done.stderr).replace(f"{source}/", ""))
    info = base.BuildInfo(
        ok=done.ok,
        command=shlex.join(command),
        log=log,
        seconds=done.seconds,
        kernels=(),
        arch=arch,
    )
    if not done.ok:
        full = shutil.disk_usage(folder).free < steps.ROOM
        failure = steps.StepFailed("nvcc", done, log, full=full)
        ended = blame.early_end(failure, limits.compile_s, info)
        raise ended or base.Rejected(base.Verdict.CE, blame.words_of(failure, log), build=info)
    made = source / PROGRAM  # no compiler can reach it; in some sandboxes none makes it executable
    try:
        made.write_bytes(read(out / PROGRAM))
    except NotAFileError as error:
        words = phrase("what the compiler makes of this is no program: {why}", why=error.why)
        raise base.Rejected(base.Verdict.CE, words, build=info) from None
    except OSError as error:
        raise base.ToolchainError.saying("nvcc left no program: {why}", why=str(error)) from None
    made.chmod(0o700)
    return WholeBuild(program=made, info=info)
