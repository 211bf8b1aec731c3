"""nvcc for real: what compiles, what is refused, and in which words."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from grader.base import native
from grader.base.errors import Rejected, ToolchainError
from grader.base.records import KernelInfo, Verdict
from grader.build import cache as build_cache
from grader.build.building import Build
from grader.build.cubin import Damaged, Elf, kernels
from grader.build.diagnostics import coloured, first_error, readable
from grader.build.entry import ENTRY, INCLUDE
from grader.build.nvcc_script import make_script
from grader.build.steps import BuildSettings, link
from grader.build.toolchain import Toolchain, find_toolchain, to_ptx
from grader.sandbox.running import ProcessLimits, Sandbox
from ptxsim import Reason, RefusedProgram
from ptxsim.frontend.module import read_module
from ptxsim.plan import MOST_NAME
from tests.support.bench import built, needs_cutlass
from tests.support.commands import STARTER, hand_in, script
from tests.support.files import beside
from tests.support.places import ROOT
from tests.support.product import GEMM

KERNEL_ONLY = STARTER[: STARTER.index("template <>")]

ORIGINAL = beside(__file__, "original.cu")


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds of an earlier run must not stand in for nvcc; the recorder may be reused."""
    folder = tmp_path_factory.mktemp("cache")
    (folder / "native").symlink_to(_native(), target_is_directory=True)
    monkeypatch.setenv(native.CACHE_VARIABLE, str(folder))


def _native() -> Path:
    folder = native.cache_folder() / "native"
    folder.mkdir(exist_ok=True)
    return folder


Compile = Callable[..., Build]


@pytest.fixture
def compiled(tmp_path: Path) -> Compile:
    def run(
        source: str,
        tools: Toolchain | None = None,
        mode: str = "auto",
        compile_s: float = 60,
        **headers: str,
    ) -> Build:
        folder = tmp_path / "eve"
        shutil.rmtree(folder, ignore_errors=True)
        for name, text in {"sgemm.cu": source, **headers}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        return built(folder, tools, mode, compile_s)

    return run


def refused(
    compiled: Compile, verdict: Verdict, words: str, source: str, **options: object
) -> Rejected:
    with pytest.raises(Rejected, match=words) as caught:
        compiled(source, **options)
    assert caught.value.verdict is verdict
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("mode", ["auto", "off"])
def test_starter(mode: str, compiled: Compile) -> None:
    one = compiled(STARTER, mode=mode)
    assert one.info.log == ""
    assert one.info.seconds > 0
    (kernel,) = one.info.kernels
    assert (kernel.name, kernel.spill_bytes) == ("_Z5sgemmPKfS0_Pfiii", 0)
    assert 8 <= kernel.registers <= 64
    ptx = one.ptx.read_text()
    assert ".target sm_80" in ptx
    assert '.file\t1 "sgemm.cu"' in ptx
    assert "sgemm-build" not in ptx
    assert one.cubin.read_bytes()[:4] == one.host_library.read_bytes()[:4] == b"\x7fELF"
    again = compiled(STARTER, mode=mode)
    assert again == one  # to the second: nothing was compiled


def made(builds: Path, name: str, hours: float) -> Path:
    """A build of a megabyte, used so long ago."""
    folder = builds / name
    folder.mkdir(parents=True)
    (folder / "host.so").write_bytes(bytes(1_000_000))
    then = time.time() - 3600 * hours
    os.utime(folder, (then, then))
    return folder


def test_the_builds_unused_for_longest_go(tmp_path: Path) -> None:
    old, older, new, _ = (
        made(tmp_path, name, hours)
        for name, hours in (("old", 5), ("older", 9), ("new", 3), ("newer", 0.5))
    )
    build_cache.prune(tmp_path, 4_000_000)
    assert older.exists()
    build_cache.prune(tmp_path, 3_000_000)
    assert not older.exists() and old.exists() and new.exists()
    build_cache.touch(old)  # taken once more
    with ThreadPoolExecutor() as pool:
        for ended in [pool.submit(build_cache.prune, tmp_path, 0) for _ in range(4)]:
            ended.result()
    assert {folder.name for folder in tmp_path.iterdir()} == {"old", "newer"}


@pytest.mark.parametrize("late", [False, True])
def test_a_build_taken_while_another_grader_removes_it_stays(
    late: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(tmp_path, "build", 5)
    (entry,) = build_cache.entries(tmp_path)
    rename = Path.rename

    def taken_first(path: Path, target: Path) -> Path:
        build_cache.touch(path)
        return rename(path, target)

    if late:  # between the last look and the removal
        monkeypatch.setattr(Path, "rename", taken_first)
    else:
        build_cache.touch(folder)
    build_cache.remove(entry)
    assert [each.name for each in tmp_path.rglob("*")] == ["build", "host.so"]


def test_a_new_build_makes_room(compiled: Compile, monkeypatch: pytest.MonkeyPatch) -> None:
    old = made(native.cache_folder() / "builds", "old", 5)
    monkeypatch.setenv(native.LIMIT_VARIABLE, "0")
    fresh = compiled(STARTER)
    assert not old.exists() and fresh.host_library.exists()

    monkeypatch.setenv(native.LIMIT_VARIABLE, "plenty")
    with pytest.raises(ToolchainError, match="SGEMM_GRADER_CACHE_GB=plenty: not a size"):
        compiled(STARTER)


@pytest.mark.sampled
def test_file_written_for_the_original_lab(compiled: Compile) -> None:
    one = compiled(ORIGINAL, **{"tile/size.cuh": "constexpr int TILE = 128;\n"})
    assert [kernel.shared_bytes for kernel in one.info.kernels if "kernel" in kernel.name] == [512]


def test_two_at_once(compiled: Compile, tmp_path: Path) -> None:
    folder = hand_in(tmp_path / "twin")
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(built, [folder, folder])
    assert first.host_library == second.host_library
    left = {path.name for path in first.host_library.parents[1].iterdir()}
    assert left == {first.host_library.parent.name, ".counted"}


def test_compile_errors_name_the_students_lines(compiled: Compile) -> None:
    source = STARTER.replace("float sum = 0.0f;", "float sum = nothing;\n  int y = also;")
    line = source[: source.index("nothing")].count("\n") + 1
    error = refused(compiled, Verdict.CE, "identifier .nothing. is undefined", source)
    assert str(error).startswith(f"sgemm.cu({line}): error: ")
    assert str(error).endswith("(and 1 more error)")
    assert error.build is not None
    assert not error.build.ok
    assert error.build.log.count("error:") == 2
    assert "sgemm_grader_entry" not in error.build.log
    assert "\x1b[1;31merror\x1b[0m: identifier" in coloured(error.build.log)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("first_line", "verdict", "words"),
    [
        ('#include "none.h"', Verdict.CE, r"^sgemm\.cu:1:10: fatal error: none\.h"),
        ('#include "tile.cuh"', Verdict.CE, r'^tile\.cuh\(2\): error: identifier "oops"'),
        ("#include <thrust/sort.h>", Verdict.CE, r"^thrust/detail/config\.h.*: write a kernel"),
        ("#include <cublas_none.h>", Verdict.FE, "sgemm.cu:1 includes .* may not call cuBLAS"),
    ],
)
def test_headers(first_line: str, verdict: Verdict, words: str, compiled: Compile) -> None:
    header = {"tile.cuh": "#pragma once\nint x = oops;\n"}
    refused(compiled, verdict, words, f"{first_line}\n{STARTER}", **header)


def test_what_would_copy_to_the_host_names_its_line(compiled: Compile) -> None:
    first = "  const dim3 block"
    source = STARTER.replace(first, f"  thrust::host_vector<float> h = d_A;\n{first}", 1)
    source = f"#include <thrust/host_vector.h>\n{source}"
    line = source[: source.index("> h = d_A")].count("\n") + 1
    words = rf"^sgemm\.cu:{line}: thrust/.*nothing can be copied from the device .* kernel"
    refused(compiled, Verdict.CE, words, source)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "source", [KERNEL_ONLY, "// nothing\n", "void run_custom(float*, float*, float*) {}\n"]
)
def test_interface_is_missing(source: str, compiled: Compile) -> None:
    refused(compiled, Verdict.FE, r"run_custom<float> is not defined in sgemm\.cu", source)


@pytest.mark.parametrize("reader", ['#include "/etc/passwd"', 'asm(".incbin \\"/etc/passwd\\"");'])
def test_other_files_cannot_be_read(reader: str, compiled: Compile) -> None:
    if Sandbox.open().kind != "bubblewrap":
        pytest.skip("bubblewrap does not work here")
    error = refused(compiled, Verdict.CE, "passwd", STARTER + reader + "\n")
    assert error.build is not None
    assert "root:" not in error.build.log


def test_endless_compilation(compiled: Compile) -> None:
    lines = [f"#define X{n} {f'X{n - 1} ' * 10}" for n in range(1, 10)]
    bomb = "\n".join(("", "#define X0 ;", *lines, "X9", ""))  # a thousand million semicolons
    with pytest.raises(Rejected, match=r"longer than 0\.3 s") as caught:
        compiled(f"{STARTER}{bomb}", compile_s=0.3)
    assert caught.value.verdict is Verdict.CE


@pytest.mark.sampled
@needs_cutlass
def test_cute(compiled: Compile) -> None:
    assert compiled(f"#include <cute/tensor.hpp>\nusing namespace cute;\n{STARTER}").info.kernels


def test_cute_is_missing(compiled: Compile) -> None:
    tools = msgspec.structs.replace(find_toolchain(), cutlass_include=None)
    with pytest.raises(ToolchainError, match=r"sgemm\.cu:1 .*'sgemm-grader\[cutlass\]'"):
        compiled(f"#include <cute/tensor.hpp>\n{STARTER}", tools)


# --- whose words these are ---------------------------------------------------------------------

SPILLING = beside(__file__, "spilling.cu")
_FIGURES = re.compile(
    r"Compiling entry function '(?P<name>\w+)'.*?(?P<frame>\d+) bytes stack frame, "
    r"(?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
    r".*?Used (?P<registers>\d+) registers"
    r"(?:.*, (?P<shared>\d+) bytes smem)?",
    re.DOTALL,
)


def by_nvcc_alone(source: Path, arch: str) -> tuple[bytes, str]:
    """The cubin that one call of nvcc makes, and what ptxas -v says of it."""
    tools = find_toolchain()
    cubin = source.with_suffix(".cubin")
    command = [str(tools.nvcc), "-cubin", f"-arch={arch}", "-std=c++17", "-lineinfo", "-Xptxas=-v"]
    command += ["--expt-relaxed-constexpr", "--extended-lambda", f"-I{INCLUDE}"]
    command += [f"-I{ROOT / 'starter'}", "-o", str(cubin)]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True, check=True)
    return cubin.read_bytes(), done.stderr


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_figures_are_those_that_ptxas_prints(arch: str, tmp_path: Path) -> None:
    source = tmp_path / "sgemm.cu"
    source.write_text(SPILLING)
    cubin, words = by_nvcc_alone(source, arch)
    printed = {
        KernelInfo(
            name=part["name"],
            registers=int(part["registers"]),
            shared_bytes=int(part["shared"] or 0),
            spill_bytes=int(part["stores"]) + int(part["loads"]),
            local_bytes=int(part["frame"]),
        )
        for part in map(_FIGURES.search, re.split(r"(?=ptxas info\s*: Compiling)", words)[1:])
        if part
    }
    assert set(kernels(cubin)) == printed
    spilled = {kernel.name[3:-1]: kernel.spill_bytes > 0 for kernel in printed}
    assert len(printed) == 3 and any(spilled.values()) and not all(spilled.values())


@pytest.mark.sampled
@pytest.mark.parametrize("rung", ["04_coalesced", "23_multistage"])
def test_machine_code_is_that_of_one_nvcc_call(
    rung: str, compiled: Compile, tmp_path: Path
) -> None:
    source = ROOT / "reference" / "sgemm" / rung / "sgemm.cu"
    cubin, _ = by_nvcc_alone(Path(shutil.copy(source, tmp_path)), "sm_80")
    ours = Elf(compiled(source.read_text()).cubin.read_bytes())
    theirs = Elf(cubin)
    code = {s.name: bytes(s.data) for s in ours.sections if s.name.startswith(".text.")}
    assert code
    assert code == {s.name: bytes(s.data) for s in theirs.sections if s.name.startswith(".text.")}


def test_forged_figures_stay_in_the_log(compiled: Compile) -> None:
    lie = (
        "ptxas info    : Compiling entry function '_Z5sgemmPKfS0_Pfiii' for 'sm_80'\n"
        "    0 bytes stack frame, 7 bytes spill stores, 7 bytes spill loads\n"
        "ptxas info    : Used 1 registers, 7 bytes smem\n"
    )
    escaped = lie.replace("\n", "\\n")
    pragma = f'asm(".pragma \\"\\n{escaped}\\";");'
    source = STARTER.replace("float sum = 0.0f;", f"float sum = 0.0f;\n  {pragma}", 1)
    assert pragma in source
    one = compiled(f'#pragma message("\\n{escaped}")\n{source}')
    assert "Used 1 registers" in one.info.log
    (kernel,) = one.info.kernels
    assert (kernel.shared_bytes, kernel.spill_bytes) == (0, 0) and kernel.registers > 7


@pytest.mark.sampled
@pytest.mark.parametrize(
    "line",
    [
        '#pragma message("\\nnvcc fatal   : Unsupported gpu architecture\\n")\n#error x',
        '#line 1 "nvcc fatal   : Unsupported gpu architecture"\n#error x',
        '#line 1 "sgemm.cu:9:1: fatal error: cute/x.hpp: No such file"\n#error x',
        '#line 1 "../entry/sgemm_grader_entry.cu"\n#error x',
        'asm(".error \\"\\\\nnvcc error   : \'cicc\' died due to signal 9 (Kill signal)\\"");',
    ],
    ids=["fatal", "fatal by #line", "header", "entry", "killed"],
)
def test_forged_failures_are_compile_errors(line: str, compiled: Compile) -> None:
    """Above all, none is the machine's fault."""
    tools = msgspec.structs.replace(find_toolchain(), cutlass_include=None)
    refused(compiled, Verdict.CE, "[Ee]rror", f"{STARTER}\n{line}\n", tools=tools)


def host_compiler(place: Path, text: str) -> Toolchain:
    """A g++ of our own, which runs ``text`` with the real one in $REAL."""
    tools, bin_folder = find_toolchain(), place / "tools" / "bin"
    program = script(bin_folder / "g++", f"REAL={tools.host_compiler}\nHERE={bin_folder}\n{text}")
    return msgspec.structs.replace(tools, host_compiler=program)


@pytest.mark.sampled
def test_a_part_of_the_compiler_is_killed(compiled: Compile, tmp_path: Path) -> None:
    tools = host_compiler(tmp_path, 'exec $REAL -B$HERE/parts/ "$@"')
    script(tools.host_compiler.parent / "parts" / "as", "kill -9 $$")
    with pytest.raises(ToolchainError, match="compiler was killed"):
        compiled(STARTER, tools)


def other_nvcc(place: Path, dryrun: str) -> Toolchain:
    """An nvcc that prints its steps through the filter ``dryrun``."""
    real = find_toolchain()
    steps = f'case "$*" in *--dryrun*) {real.nvcc} "$@" 2>&1 | {dryrun} >&2;;\n'
    program = script(place / "nvcc", f'{steps}*) exec {real.nvcc} "$@";; esac')
    return msgspec.structs.replace(real, nvcc=program, roots=(*real.roots, place))


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a"])
def test_nvcc_takes_the_steps_that_can_run_side_by_side(arch: str, tmp_path: Path) -> None:
    tools = find_toolchain(arch)
    (tmp_path / "x.cu").touch()
    call = [str(tools.nvcc), to_ptx(arch), "-c", "-keep", "x.cu", f"-ccbin={tools.host_compiler}"]
    assert make_script(call, tmp_path)


def test_an_nvcc_with_other_steps_takes_them_itself(compiled: Compile, tmp_path: Path) -> None:
    ours = compiled(STARTER, other_nvcc(tmp_path, "grep -v fatbinary"))
    usual = compiled(STARTER)
    assert ours.ptx.read_bytes() == usual.ptx.read_bytes()
    assert usual.second_ptx.read_bytes() and not ours.second_ptx.read_bytes()


@pytest.mark.parametrize(
    ("end", "words"),
    [("KILL", "compiler was killed"), ("SEGV", "compiler failed: Segmentation fault")],
)
def test_a_signal_ends_a_step_of_nvcc(
    end: str, words: str, compiled: Compile, tmp_path: Path
) -> None:
    tools = other_nvcc(tmp_path, f"sed 's#\"$CICC_PATH/#{tmp_path}/\"#'")
    script(tmp_path / "cicc", f"kill -{end} $$")
    with pytest.raises(ToolchainError, match=words):
        compiled(STARTER, tools)


def test_a_kernel_that_launches_a_kernel(compiled: Compile) -> None:
    nested = "__global__ void inner() {}\n__global__ void outer() { inner<<<1, 1>>>(); }\n"
    words = r"sgemm\.cu\(\d+\): .*; kernels that launch kernels are not supported"
    refused(compiled, Verdict.CE, words, f"{STARTER}\n{nested}")


@pytest.mark.sampled
def test_an_assembler_that_crashes_is_said_to(compiled: Compile, tmp_path: Path) -> None:
    tools = host_compiler(tmp_path, 'exec $REAL "$@"')
    crash = "grep -q unlucky kernels.ptx && kill -SEGV $$"
    program = tools.host_compiler.with_name("ptxas")
    script(program, f'{crash}\nexec {tools.ptxas} "$@"')
    source = f"{STARTER}\n__global__ void unlucky() {{}}\n"
    words = r"ptxas itself crashed \(Segmentation fault\)"
    refused(
        compiled, Verdict.CE, words, source, tools=msgspec.structs.replace(tools, ptxas=program)
    )


@pytest.mark.sampled
def test_a_machine_that_cannot_compile_is_no_fault_of_the_submission(
    compiled: Compile, tmp_path: Path
) -> None:
    words = "echo 'crt.h(3): error: this toolkit is broken' >&2; exit 1"
    tools = host_compiler(tmp_path, f'case "$*" in *" -c "*) {words};; esac; exec $REAL "$@"')
    with pytest.raises(ToolchainError, match=r"trial program: crt\.h\(3\): error: this toolkit"):
        compiled(STARTER, tools)


PRINTING = beside(__file__, "printing.cu")


@pytest.mark.parametrize("annotation", ["__device__", "/* not host */ ON_DEVICE"])
def test_a_lambda_for_the_device(annotation: str, compiled: Compile) -> None:
    run = "template <class F> __global__ void run(F f) { f(threadIdx.x); }\n"
    call = f"void go(float* x) {{ run<<<1, 1>>>([=] {annotation}(int i) {{ x[i] = 1; }}); }}\n"
    compiled(f"{STARTER}\n#define ON_DEVICE __device__\n{run}{call}")


def test_the_driver_formats_nothing_that_a_kernel_prints(compiled: Compile) -> None:
    made = Elf(compiled(PRINTING).cubin.read_bytes())
    assert {symbol.name for _, symbol in made.symbols(undefined=True)} <= {
        "",
        ".nv.reservedSmem.offset0",
    }


def test_functions_of_cuda_keep_their_names(compiled: Compile) -> None:
    declared = ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);"
    call = ".entry z() { .param .b32 r; .param .b64 a; call.uni (r), vprintf, (a, a);"
    asm = f'asm volatile("ret; }}\\n{declared}\\n{call}");'
    source = f"{STARTER}__global__ void k() {{ {asm} }}"
    refused(compiled, Verdict.CE, "inline assembly declares vprintf", source)
    own = ".version 9.0\n.target sm_80\n.address_size 64\n.func vprintf() { trap; trap; ret; }"
    with pytest.raises(RefusedProgram, match="vprintf is a function of CUDA's") as caught:
        read_module(own, Path("/nowhere"))
    assert caught.value.reason is Reason.TAKEN_NAME


def test_the_names_of_kernels_and_variables_have_a_bound() -> None:
    """And no others, since neither plans nor results hold those."""
    header = ".version 9.0\n.target sm_80\n.address_size 64\n"
    body = "{ .shared .b32 SHARED; ret; }"
    for longest in (f".global .b32 NAME; .func f() {body}", f".entry NAME() {body}"):
        text = header + longest.replace("SHARED", "s" * 70_000)
        read_module(text.replace("NAME", "n" * MOST_NAME), Path("/nowhere"))
        with pytest.raises(RefusedProgram, match=r"the name n{79}… has 16385 characters") as caught:
            read_module(text.replace("NAME", "n" * (MOST_NAME + 1)), Path("/nowhere"))
        assert caught.value.reason is Reason.LONG_NAME


def test_options_in_sections_mean_nothing_to_the_linker(tmp_path: Path) -> None:
    """A plain link of the same object runs the assembler with them, which writes the file."""
    written = tmp_path / "written"
    source, host_object = tmp_path / "x.cpp", tmp_path / "x.o"
    source.write_text("int x() { return 1; }\n")
    gcc = [str(find_toolchain().host_compiler), "-fPIC"]
    options = ["-flto", "-ffat-lto-objects", "-Xassembler", f"-alh={written}"]
    subprocess.run([*gcc, *options, "-c", str(source), "-o", str(host_object)], check=True)
    written.unlink(missing_ok=True)
    subprocess.run(
        [*gcc, "-shared", str(host_object), "-o", str(tmp_path / "plain.so")], check=True
    )
    if not written.exists():
        pytest.skip("this g++ has no plugin for link-time optimisation")
    written.unlink()
    settings = BuildSettings(
        toolchain=find_toolchain(),
        sandbox=Sandbox.open("off"),
        arch="sm_80",
        limits=ProcessLimits(cpu_s=60),
        interface=GEMM.interface,
        lambdas=False,
    )
    assert link(settings, host_object.read_bytes()).files["host.so"].startswith(b"\x7fELF")
    assert not written.exists()


@pytest.mark.sampled
def test_nvcc_takes_no_options_from_the_environment(
    compiled: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS"):
        monkeypatch.setenv(name, "--no-such-option")
    find_toolchain.cache_clear()
    assert compiled(STARTER).info.kernels


HOSTILE = {
    "one line": "sgemm.cu(1): " + "erro " * 200_000,
    "errors": "sgemm.cu(1): error: x\n" * 50_000,
    "carets": (" " * 998 + "^~ x\n") * 1000,
    "spaces": " " * 1_000_000,
    "brackets": "a(1" * 330_000,
    "colons": ("a:1" * 300 + "\n") * 1100,
    "dots": "./" * 500_000,
    "figures": "ptxas info    : Compiling entry function '" * 25_000,
    "colours": "\x1b[1;31merror\x1b[0m: " * 50_000,
    "separators": "\x1c\x85\u2028" * 330_000,
    "our file": f"{ENTRY} " * 45_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_megabyte_of_output_is_read_in_no_time(text: str) -> None:
    start = time.process_time()
    log = readable(text)
    first_error(log)
    coloured(log)
    assert time.process_time() - start < 1.0
    assert len(log) < 300_000


@pytest.mark.parametrize("name", ["kernels.ptx", "kernels.cubin", "host.so", "build.json"])
def test_a_damaged_build_is_not_used(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "builds" / "one"
    files = dict.fromkeys(("kernels.ptx", "kernels.cubin", "host.so"), b"content")
    build_cache.keep(folder, b'{"of": "this"}', files)
    assert build_cache.find(folder, files) == b'{"of": "this"}'
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
    assert build_cache.find(folder, files) is None
    build_cache.keep(folder, b"{}", files)
    assert build_cache.find(folder, files) == b"{}"


def test_a_link_in_place_of_a_build_is_not_followed(tmp_path: Path) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "builds" / "one"
    build_cache.keep(elsewhere, b"{}", {"host.so": b"x"})
    folder.parent.mkdir()
    folder.symlink_to(elsewhere, target_is_directory=True)
    assert build_cache.find(folder, ["host.so"]) is None
    assert not folder.is_symlink() and (elsewhere / "host.so").exists()
    assert folder.parent.stat().st_mode & 0o022 == 0


@pytest.mark.parametrize("cut", [0, 10, 63, 64, 200, -1])
def test_a_cut_off_elf_file_is_damaged(cut: int, tmp_path: Path) -> None:
    source = tmp_path / "x.cpp"
    source.write_text("int run(); int x() { return run(); }\n")
    whole = source.with_suffix(".o")
    subprocess.run([find_toolchain().host_compiler, "-c", source, "-o", whole], check=True)
    data = whole.read_bytes()
    assert [symbol.name for _, symbol in Elf(data).symbols(undefined=True)][1:] == ["_Z3runv"]
    with pytest.raises(Damaged):
        Elf(data[:cut])
