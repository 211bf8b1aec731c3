"""The three steps of a build: nvcc, ptxas and the linker, each in a sandbox of its own.

    nvcc    sources → PTX, host object
    ptxas   that PTX → cubin
    g++     that object → host library

All output of nvcc counts as the student's: inline assembly can put anything into the PTX and the
object. So each step runs in its own folder, its results are read once, and those bytes go to the
next step. ptxas gets exactly the bytes that the grader parses. The linker runs without its plugin,
so that sections for link-time optimisation cannot pass options to a compiler.
"""

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from grader.base import ToolchainError
from grader.build.diagnostics import first_error, readable
from grader.build.entry import ENTRY, INCLUDE, WRAPPER
from grader.build.nvcc_script import SCRIPT, SECOND_S, make_script, second_ptx
from grader.build.toolchain import Toolchain, to_ptx
from grader.labs import NotAFileError, open_folder, read
from grader.problems import Interface
from grader.sandbox import Completed, ProcessLimits, Sandbox
from ptxsim import with_own_library
from ptxsim.plan import Record
from ptxsim.text import phrase

PTX, CUBIN, OBJECT, LIBRARY = "kernels.ptx", "kernels.cubin", "host.o", "host.so"
SECOND = "second.ptx"  # of nvcc -G; empty if there is none
# Host code keeps line tables (-g1), so that a crash or a refused call can be pinned to a line.
_COMPILE = (
    "-std=c++17",
    "-lineinfo",
    "--expt-relaxed-constexpr",
    "-c",
    "-keep",
    "-keep-dir=../out",
    # The guard of a part of <cmath>, an eighth of the time: sgemm_grader/special_functions.h.
    "-D_GLIBCXX_BITS_SPECFUN_H",
    "-Xcompiler=-fPIC,-g1",
    # If a part of g++ is killed, g++ prints a message, and a submission can print the same
    # message. With these options g++ reports it by its exit status.
    r"-Xcompiler=-pass-exit-codes,-wrapper,/bin/sh\,../entry/gcc_wrapper.sh",
)
# Calls into the runtime stay undefined. They bind when first called, so an unused call
# does no harm.
_LINK = ("-shared", "-fno-lto", "-fno-use-linker-plugin", "-Wl,-z,lazy")
_UNRESOLVED = "-Wl,--unresolved-symbols=ignore-all"
_ATTEMPTS = 2  # one more if another process kills the compiler, or it fails without an error
ROOM = 1 << 20  # bytes
_KILLED = 128 + signal.SIGKILL  # as a shell reports it
_MIB = 1 << 20
_PREPROCESSED = "lines.ii"
_LARGEST = {
    **{PTX: 16 * _MIB, CUBIN: 64 * _MIB, OBJECT: 64 * _MIB, LIBRARY: 64 * _MIB},
    _PREPROCESSED: 64 * _MIB,
}

_OURS = Path("../entry")  # our entry point, and the problem's header

Fill = Callable[[Path], None]  # writes the inputs of a step into an empty folder


class BuildSettings(Record):
    toolchain: Toolchain
    sandbox: Sandbox
    arch: str  # "sm_80"
    limits: ProcessLimits  # of each step
    interface: Interface
    lambdas: bool  # whether a lambda may run on the device
    ahead: Callable[[bytes], object] = lambda _ptx: None  # gets the PTX before the cubin is made


class Made(Record):
    files: dict[str, bytes]
    output: str
    seconds: float


class StepFailed(Exception):  # noqa: N818 - somebody has to find out whose fault it is
    """A step ended without a result."""

    def __init__(self, step: str, done: Completed, output: str, *, full: bool) -> None:
        super().__init__(step)
        self.step = step
        self.done = done
        self.output = output
        self.full = full  # the disk
        self.killed = _killed(done)


class TooLarge(Exception):  # noqa: N818 - the submission's doing
    """A step made a file too large for later steps."""

    def __init__(self, name: str, output: str) -> None:
        super().__init__()
        words = phrase("what the compiler makes of this ({name}) is larger than {size} MiB")
        self.message = words.given(name=name, size=_LARGEST[name] >> 20)
        self.output = output


def commands(settings: BuildSettings) -> dict[str, list[str]]:
    """The command line of each step, to be run in the folder of its inputs."""
    toolchain, arch = settings.toolchain, settings.arch
    translate = [
        str(toolchain.nvcc),
        to_ptx(arch),  # the cubin is made from it later
        f"-ccbin={toolchain.host_compiler}",
        *_COMPILE,
        # Brings <functional>, which takes a quarter of the compiler's time.
        *(["--extended-lambda"] if settings.lambdas else []),
        *_includes(toolchain),
        f"-o=../out/{OBJECT}",
        f"{_OURS}/{ENTRY}",
    ]
    assemble = [str(toolchain.ptxas), f"-arch={arch}", "-m64", "--generate-line-info"]
    assemble += [PTX, "-o", f"../out/{CUBIN}"]
    link = [str(toolchain.host_compiler), *_LINK, _UNRESOLVED, OBJECT, "-o", f"../out/{LIBRARY}"]
    return {"nvcc": translate, "ptxas": assemble, "g++": link}


def _includes(toolchain: Toolchain) -> list[str]:
    return [f"-I{folder}" for folder in (INCLUDE, _OURS, Path(), *toolchain.cutlass_folders)]


def translate(settings: BuildSettings, fill: Fill, entry: str) -> Made:
    """PTX and host object of the sources that ``fill`` writes, compiled through our file ``entry``.
    Raises StepFailed."""
    kept = f"{ENTRY.removesuffix('.cu')}.ptx"
    second = second_ptx(kept)
    made, source = _step("nvcc", settings, fill, (kept, OBJECT), entry, optional=second)
    first, second_build = (_with_our_names(made.files[name], source) for name in (kept, second))
    files = {PTX: first, SECOND: second_build, OBJECT: made.files[OBJECT]}
    return msgspec.structs.replace(made, files=files)


def _with_our_names(ptx: bytes, source: Path) -> bytes:
    """``.file "/scratch/source/./sgemm.cu"`` becomes ``"sgemm.cu"``. Names in full are not the
    student's."""
    for place, name in ((source, b'"'), (INCLUDE, b'"/grader/'), (_OURS, b'"/grader/')):
        for prefix in (f'"{place}/./', f'"{place}/'):
            ptx = ptx.replace(prefix.encode(), name)
    return with_own_library(ptx)


def assemble(settings: BuildSettings, ptx: bytes) -> Made:
    """PTX → cubin. Raises StepFailed."""
    return _step("ptxas", settings, partial(_write, PTX, ptx), (CUBIN,))[0]


def link(settings: BuildSettings, host_object: bytes) -> Made:
    """Host object → host library. Raises StepFailed."""
    return _step("g++", settings, partial(_write, OBJECT, host_object), (LIBRARY,))[0]


def only_directives(settings: BuildSettings, fill: Fill) -> str:
    """The device's view of the main file and all that it includes, with macros as they are written.
    Raises StepFailed and TooLarge."""
    toolchain, digits = settings.toolchain, "".join(filter(str.isdigit, settings.arch))
    command = [
        *(str(toolchain.nvcc), "-E", f"-arch={settings.arch}", "-std=c++17", "--extended-lambda"),
        *(f"-ccbin={toolchain.host_compiler}", "-Xcompiler=-fdirectives-only"),
        *(f"-D__CUDA_ARCH__={digits}0", *_includes(toolchain)),
        *(settings.interface.main, f"-o=../out/{_PREPROCESSED}"),
    ]
    made, _ = _step("nvcc -E", settings, fill, (_PREPROCESSED,), command=command)
    return made.files[_PREPROCESSED].decode(errors="replace")


def only_macros(settings: BuildSettings, text: str) -> str:
    """A text with the macros that it defines expanded, and no others. Raises StepFailed and
    TooLarge."""
    fill = partial(_write, "own.ii", text.encode())
    options = ("-E", "-w", "-undef", "-nostdinc", "-std=c++17", "-x", "c++")
    command = [str(settings.toolchain.host_compiler), *options]
    command += ["own.ii", "-o", f"../out/{_PREPROCESSED}"]
    made, _ = _step("g++ -E", settings, fill, (_PREPROCESSED,), command=command)
    return made.files[_PREPROCESSED].decode(errors="replace")


def _write(name: str, content: bytes, folder: Path) -> None:
    (folder / name).write_bytes(content)


def _step(
    step: str,
    settings: BuildSettings,
    fill: Fill,
    wanted: Sequence[str],
    entry: str = "",
    optional: str = "",
    *,
    command: Sequence[str] = (),
) -> tuple[Made, Path]:
    """The files ``wanted``, and the folder that it ran in. Only ../out can be written to there.

    optional: one more file, empty where there is none.
    """
    limits = settings.limits
    shown = [*settings.toolchain.shown, INCLUDE, *settings.toolchain.cutlass_folders]
    with tempfile.TemporaryDirectory(prefix="sgemm-build-") as name:
        scratch = Path(name).resolve()
        source, ours, out = (scratch / part for part in ("source", "entry", "out"))
        for folder in (source, ours, out):
            folder.mkdir()
        fill(source)
        (ours / ENTRY).write_text(entry)
        (ours / settings.interface.header).write_text(settings.interface.text)
        shutil.copyfile(WRAPPER, ours / WRAPPER.name)
        command = command or commands(settings)[step]
        if step == "nvcc" and (script := make_script(command, source)):
            (ours / SCRIPT).write_text(script)
            command = ["/bin/sh", f"{_OURS}/{SCRIPT}"]
            limits = msgspec.structs.replace(limits, cpu_s=limits.cpu_s + SECOND_S)
        descriptor = open_folder(out)
        try:
            for _ in range(_ATTEMPTS):
                done = settings.sandbox.run(
                    command,
                    cwd=source,
                    limits=limits,
                    readable=[*shown, source, ours],
                    writable=[out],
                    env={"TMPDIR": str(out)},
                )
                output = done.stdout + done.stderr
                for hidden in (source, out, INCLUDE):
                    output = output.replace(f"{hidden}/", "")
                in_error = not _killed(done) and first_error(readable(output))
                if done.ok or done.timed_out or in_error:
                    break
            if not done.ok:
                full = shutil.disk_usage(scratch).free < ROOM
                raise StepFailed(step, done, output, full=full)
            files = {each: _taken(each, descriptor, output) for each in wanted}
            if optional:
                files[optional] = b""
                with suppress(ToolchainError, TooLarge):
                    files[optional] = _taken(optional, descriptor, output)
        finally:
            os.close(descriptor)
    return Made(files=files, output=output, seconds=done.seconds), source


def _taken(name: str, folder: int, output: str) -> bytes:
    kind = PTX if name.endswith(".ptx") else name
    try:
        return read(name, _LARGEST[kind], folder)
    except NotAFileError:
        raise TooLarge(kind, output) from None
    except FileNotFoundError:
        raise ToolchainError.saying(
            "the compiler succeeded and left no {name}; is it nvcc?", name=name
        ) from None


def _killed(done: Completed) -> bool:
    """Whether another process killed the compiler or a part of it."""
    ended_by_us = done.timed_out or done.starved
    return not ended_by_us and (done.killed or done.returncode == _KILLED)
