"""The command ``ptxsim``: its answers, its errors and its exit status."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness import engine, kernels, table, values
from ptxsim import cli, launching

SOURCE = kernels("scale.cu")
RIGHT = "--grid 2 --block 32 --arg random:64f32 --arg out:64f32 --arg 2"
WRONG = "--grid 2 --block 32 --arg x.npy --arg out:64f32 --arg 0.5"
Command = Callable[[str], tuple[int, str, str]]


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    ready = engine()
    capsys.readouterr()  # that it was compiled, if it was
    monkeypatch.setattr(launching, "default_engine", lambda: ready)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scale.cu").write_text(SOURCE)
    (tmp_path / "two.cu").write_text(SOURCE + SOURCE.replace("scale", "again"))
    last = "__global__ void last(int* a) { atomicExch(a, blockIdx.x); }"
    (tmp_path / "last.cu").write_text(last)
    (tmp_path / "copy.cu").write_text("__global__ void copy(char* made, int n) {}")
    (tmp_path / "texture.ptx").write_text(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n"
        "  .reg .b32 %r<2>;\n  tcgen05.wait::ld.sync.aligned;\n  ret;\n}\n"
    )
    np.save("x.npy", np.arange(60, dtype=np.float32))
    np.save("half.npy", np.arange(64, dtype=np.float32) / 2)
    np.save("nan.npy", np.full(64, np.nan, np.float32))

    def called(line: str) -> tuple[int, str, str]:
        status = cli.main(line.split())
        out, err = capsys.readouterr()
        return status, out, err

    return called


def test_run_answers_with_sentences_excerpts_and_a_status(command: Command) -> None:
    assert command(f"run scale.cu {RIGHT}") == (0, "scale: nothing found\n", "")
    status, said, err = command(f"run scale.cu --kernel scale {WRONG} --expect half.npy")
    assert (status, err) == (1, "")
    assert "reads 4 bytes at argument 0[60], just past the end of the 240-byte" in said
    assert "\n  scale.cu:3, 4 times\n" in said and "\n  > 3 │   y[i] = factor" in said
    assert said.endswith("argument 1[60] is 0.0, and half.npy has 30.0; 4 of 64 elements differ\n")
    status, said, _ = command("run last.cu --grid 3 --arg out:1i32 --orders 2")
    assert status == 1 and "it is 2 in the order of their numbers and 0 in another" in said
    for form in ("", "--json", "--sarif"):
        _, said, _ = command(f"run scale.cu {WRONG} --orders 3 --seed 7 {form}")
        assert "allocation argument 0 (in order 1 of 3, that of their numbers)" in said
    status, said, _ = command(f"run scale.cu {RIGHT} --expect 1=nan.npy")
    assert status == 1 and "argument 1[0] is" in said and "64 of 64 elements differ" in said


@pytest.mark.parametrize(("want", "made", "options", "differ"), values("expected.txt"))
def test_what_is_expected_may_have_any_size(
    command: Command, want: str, made: str, options: str, differ: int
) -> None:
    for name, text in (("want.npy", want), ("made.npy", made)):
        kind, *numbers = text.split()
        np.save(name, np.array(numbers, kind))
    status, said, _ = command(
        f"run copy.cu --arg made.npy --arg {len(numbers)} --expect 0=want.npy {options}"
    )
    assert (status, f"{differ} of {len(numbers)} elements" in said) == (bool(differ), bool(differ))


def test_run_writes_json_and_sarif(command: Command) -> None:
    status, said, _ = command(f"run scale.cu {WRONG} --expect half.npy --json")
    document = json.loads(said)
    found, wrong = document["findings"]
    assert status == 1 and not document["clean"] and wrong["kind"] == "wrong-result"
    assert (found["kind"], found["file"], found["line"]) == ("out-of-bounds", "scale.cu", 3)
    status, said, _ = command(f"run scale.cu {WRONG} --expect half.npy --sarif")
    (run,) = json.loads(said)["runs"]
    assert status == 1 and run["tool"]["driver"]["name"] == "ptxsim"
    assert [each["ruleId"] for each in run["results"]] == ["out-of-bounds", "wrong-result"]


def test_counts_are_named_as_ncu_names_them(command: Command) -> None:
    status, said, _ = command(f"counts scale.cu {RIGHT} --json")
    (line,) = (each for each in json.loads(said) if each["line"] == 3)
    assert status == 0
    assert line["metrics"] == {
        "smsp__inst_executed.sum": 12,
        "smsp__thread_inst_executed.sum": 384,
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 2,
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 8,
        "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": 2,
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": 8,
    }
    assert line["mix"]["ld.global.f32"] == line["mix"]["st.global.f32"] == 2
    assert "out-of-bounds" in command(f"counts scale.cu {WRONG}")[2]
    _, said, _ = command(f"counts scale.cu {RIGHT}")
    assert said.startswith("all lines\n  smsp__inst_executed.sum ") and "\nscale.cu:3\n" in said


@pytest.mark.parametrize(("line", "status", "says"), table("usage_errors.txt"))
def test_errors_are_one_line_that_says_what_to_change(
    command: Command, line: str, status: str, says: str
) -> None:
    done = command(line.replace("RIGHT", RIGHT))
    assert done[:2] == (int(status), "") and says in done[2] and done[2].count("\n") == 1


def test_what_nvcc_hides_is_looked_for_in_a_second_build(command: Command) -> None:
    Path("hidden.cu").write_text(kernels("local_arrays.cu"))
    call = "run hidden.cu --block 32 --arg random:64f32 --arg out:32f32 --kernel"
    status, said, err = command(f"{call} between --arg 3")
    assert (status, err) == (1, "") and "past the end of the 8-byte array b" in said
    status, said, _ = command(f"{call} stage --arg 1 --json")
    (found,) = json.loads(said)["findings"]
    assert (status, found["kind"], found["line"]) == (1, "uninitialized-read", 76)
    assert command(f"{call} stage --arg 2") == (0, "stage: nothing found\n", "")
    assert command(f"{call} stage --arg 1 --no-debug-build") == (0, "stage: nothing found\n", "")
    status, said, err = command(f"{call} not_simulated --arg 1")
    assert (status, said) == (0, "not_simulated: nothing found\n")
    assert err.startswith("ptxsim: not looked at without optimisation: ") and "tcgen05" in err


@pytest.mark.parametrize(
    "flags",
    ["-I inc -D BY=2 -std c++20 -arch sm_90", "-Iinc -DBY=2 -std=c++20 -arch=sm_90 -DOTHER"],
)
def test_nvcc_gets_its_options_as_it_spells_them(command: Command, flags: str) -> None:
    Path("inc").mkdir()
    Path("inc/by.cuh").write_text("template <typename T> concept Any = true;\n#define FACTOR BY")
    asks = '#include <by.cuh>\nstatic_assert(__cplusplus > 201703L);\n#line 1 "scale.cu"\n'
    guard = "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 900\n#error arch\n#endif\n"
    Path("scale.cu").write_text(guard + asks + SOURCE.replace("factor * x", "FACTOR * x"))
    np.save("ones.npy", np.ones(64, np.float32))
    np.save("twos.npy", np.full(64, 2, np.float32))
    call = "run scale.cu --grid 2 --block 32 --arg ones.npy --arg out:64f32 --arg 5"
    assert command(f"{call} {flags} --expect twos.npy") == (0, "scale: nothing found\n", "")
    status, _, err = command(f"{call} {flags[:6]}")
    assert status == 3 and err.count("\n") == 1


def test_variables_get_values_by_name(command: Command) -> None:
    Path("mask.cu").write_text(kernels("mask.cu"))
    np.save("mask.npy", np.array([1, 2, 3], np.float32))
    np.save("y.npy", np.full(32, 9, np.float32))
    np.save("ones.npy", np.ones(34, np.float32))
    line = "run mask.cu --block 32 --arg ones.npy --arg out:32f32"
    status, out, _ = command(line)
    assert (
        status == 1
        and "the kernel uses weights, 12 bytes of __constant__ memory that are all 0" in out
    )
    given = "--symbol weights=mask.npy --symbol offset=zeros:1f32 --symbol scale=ones.npy"
    status, _, err = command(f"{line} {given}")
    assert (status, err) == (2, "ptxsim: scale has 4 bytes; its array has 136\n")
    np.save("ones1.npy", np.array([1.5], np.float32))
    given = given.replace("scale=ones.npy", "scale=ones1.npy")
    assert command(f"{line} {given} --expect 1=y.npy")[0] == 0
    for wrong, says in (
        ("weight=mask.npy", "there is no one variable weight; the file has weights, offset, scale"),
        ("weights=3", "--symbol weights=3: give NAME=FILE.npy or NAME=random:3f32"),
    ):
        assert command(f"{line} --symbol {wrong}") == (2, "", f"ptxsim: {says}\n")


PAGE = (Path(__file__).parents[1] / "docs" / "launches.md").read_text()
NORM_CU, NORM_JSON = re.findall(r"^```(?:cuda|json)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SQUARE = {"kernel": "square", "grid": 4, "block": [32], "arguments": ["x", "squares", 100]}
TOTAL = {"kernel": "total", "grid": [1, 1], "block": 32, "shared": 128}
WORK = {
    "buffers": {"x": "zeros:100f32", "squares": "out:100f32", "sum": "out:1f32"},
    "launches": [SQUARE, {**TOTAL, "arguments": ["squares", "sum", 100]}],
}


def launches(*given: object, **buffers: str) -> None:
    """Write steps.json: these launches instead of those of WORK, these buffers besides its own."""
    asked = {"buffers": {**WORK["buffers"], **buffers}, "launches": given or WORK["launches"]}
    Path("steps.json").write_text(json.dumps(asked))


@pytest.fixture
def steps(command: Command) -> Command:
    """The command for two.cu of two kernels, and steps.json with launches of both."""
    Path("two.cu").write_text(NORM_CU)
    np.save("n.npy", np.arange(100, dtype=np.float32))
    np.save("sum.npy", np.array([328350], np.float32))
    launches(x="n.npy")
    return lambda line: command(f"{line} --launches steps.json")


def test_the_page_on_launches_shows_what_is_said(command: Command) -> None:
    Path("norm.cu").write_text(NORM_CU)
    Path("norm.json").write_text(NORM_JSON)
    (line,) = re.findall(r"^\$ ptxsim (.*)", PAGE, re.MULTILINE)
    status, said, _ = command(line)
    assert status == 1 and f"{line}\n{said}```" in PAGE
    Path("norm.json").write_text(NORM_JSON.replace('"grid": 3', '"grid": 4'))
    assert command(line) == (0, "square, total: nothing found\n", "")


def test_launches_of_a_file_run_in_its_order(steps: Command) -> None:
    expect = "--expect sum=sum.npy"
    assert steps(f"run two.cu {expect} --orders 2") == (0, "square, total: nothing found\n", "")
    status, said, _ = steps("run two.cu --expect squares=n.npy --json")
    (wrong,) = json.loads(said)["findings"]
    assert status == 1 and wrong["message"].startswith("squares[2] is 4.0, and squares=n.npy has")
    assert steps("run two.cu --expect n.npy")[1].endswith("98 of 100 elements differ\n")
    status, said, _ = steps("counts two.cu")
    assert status == 0 and "two.cu:3\n" in said and "two.cu:10\n" in said
    launches(*reversed(WORK["launches"]), x="n.npy")
    status, said, _ = steps(f"run two.cu {expect}")
    assert status == 1 and "(squares): what block (0,0,0) thread (0,0,0) read at line 10" in said
    launches(SQUARE | {"arguments": ["x", "few", 100]}, few="zeros:90f32")
    status, said, _ = steps("run two.cu")
    assert status == 1 and "writes 4 bytes at few[90], just past the end of the 360-byte" in said


@pytest.mark.parametrize(("change", "says"), table("launch_errors.txt"))
def test_a_wrong_file_of_launches_is_one_line(steps: Command, change: str, says: str) -> None:
    changed = json.loads(change) if change.startswith("{") else {}
    buffers = {name: changed.pop(name) for name in ("x",) if name in changed}
    launches(
        {name: each for name, each in (SQUARE | changed).items() if each is not None}, **buffers
    )
    status, said, err = steps(f"run two.cu {'' if changed or buffers else change}")
    assert (status, said, err.count("\n")) == (2, "", 1) and err.startswith(f"ptxsim: {says}")


def test_a_file_of_launches_that_is_no_json_is_one_line(steps: Command) -> None:
    Path("steps.json").write_text('{"buffers": {},\n "launches": [],\n}')
    status, _, err = steps("run two.cu")
    assert status == 2 and err.startswith(
        "ptxsim: steps.json: Expecting property name enclosed in double quotes: line 3 "
    )
    Path("steps.json").write_text('{"buffers": {}, "launches": []}')
    assert steps("run two.cu")[2].startswith("ptxsim: steps.json: launches: Expected `array`")
    Path("steps.json").unlink()
    assert steps("run two.cu")[2].startswith("ptxsim: steps.json: No such file or directory; ")
