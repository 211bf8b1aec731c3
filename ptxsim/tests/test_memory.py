"""Memory: where shared arrays lie, overruns, the heap, calls through pointers, undefined bits.

ptx_oddities.txt compares the addresses of shared arrays with ptxas's.
"""

from pathlib import Path

import numpy as np
import pytest

from harness import (
    kernels,
    launch,
    launched,
    planned,
    run,
    run_ptx,
    sentence,
    table,
    values,
)
from ptxsim.findings.finding import FindingKind, Severity
from ptxsim.frontend.module import read_module
from ptxsim.lowering.notes import origins, tensor_core_notes
from ptxsim.outcome import RefusedProgram, SimOutcome
from ptxsim.tensor_maps import Output


def run_shared(
    body: str, tmp_path: Path, n: int = 0, target: str = "sm_80"
) -> tuple[SimOutcome, int]:
    path = tmp_path / "shared.ptx"
    path.write_text(kernels("shared_arrays.ptx", body=body, target=target))
    out = np.zeros(1, np.uint32)
    outcome = launch(path, "k", 1, 1, [Output(out), n], shared=256)
    return outcome, int(out[0])


@pytest.mark.parametrize(("target", "base"), [("sm_75", 0), ("sm_89", 0), ("sm_90a", 1024)])
def test_the_first_bytes_belong_to_the_system_from_hopper_on(
    target: str, base: int, tmp_path: Path
) -> None:
    for register, at in (("%r2", base), ("%r3", base + 256), ("%r4", base + 512)):
        outcome, address = run_shared(f"st.global.u32 [%rd1], {register};", tmp_path, target=target)
        assert (address, outcome.findings) == (at, ())


@pytest.mark.parametrize(("n", "body", "says"), table("overruns.txt"))
def test_an_overrun_is_found_by_where_the_address_comes_from(
    n: str, body: str, says: str, tmp_path: Path
) -> None:
    every = "shl.b32 %r5, %r1, 2;"
    every += "st.shared.u32 [first+4], 1; st.shared.u32 [second+4], 1; st.shared.u32 [dyn], 1;"
    found = run_shared(every + body, tmp_path, int(n))[0].findings
    assert [each.kind in (FindingKind.OUT_OF_BOUNDS, FindingKind.MISALIGNED) for each in found] == [
        True
    ] * bool(says)
    assert says in "".join(sentence(each) for each in found)


@pytest.mark.parametrize(("target", "first"), [("sm_80", 0), ("sm_90", 1024)])
def test_a_program_that_computes_with_an_address_is_told_so(
    target: str, first: int, tmp_path: Path
) -> None:
    body = "xor.b32 %r6, %r2, %r1; st.shared.u32 [%r6], 1; xor.b32 %r5, %r1, 3;"
    outcome, _ = run_shared(body, tmp_path, target=target)
    assert outcome.findings == ()
    (hint,) = outcome.hints
    assert f"is {first} here" in sentence(hint)
    assert not run_shared("xor.b32 %r5, %r1, 3; st.shared.u32 [first], 1;", tmp_path)[0].hints


@pytest.mark.parametrize(("code", "depends"), values("first_address.txt"))
def test_what_depends_on_the_first_address_is_a_hint(
    code: str, depends: bool, tmp_path: Path
) -> None:
    outcome, _ = run_shared(f"{code} st.global.u32 [%rd1], %r5;", tmp_path)
    assert [hint.kind for hint in outcome.hints] == [FindingKind.HINT] * depends


EXTERNS = kernels("extern_arrays.cu")


@pytest.mark.parametrize(("kernel", "says"), table("extern_arrays.txt"))
def test_extern_arrays_that_are_taken_for_different_memory(kernel: str, says: str) -> None:
    made, out = np.random.default_rng(3).random(128, np.float32), np.zeros(64, np.float32)
    seen = run(EXTERNS, [made, out], kernel=kernel, block=(64, 1, 1), shared=1024).findings
    body = EXTERNS[: EXTERNS.index("\n}\n", EXTERNS.index(f" {kernel}("))]
    bad = [n for n, line in enumerate(body.splitlines(), 1) if line.endswith("// BAD")][-1:]
    assert [each.place and each.place.line for each in seen] == bad * bool(says)
    assert all(says in sentence(each) for each in seen), [sentence(each) for each in seen]
    assert {each.severity for each in seen} <= {Severity.WARNING}


def test_a_race_of_two_extern_arrays_names_both() -> None:
    made, out = np.zeros(128, np.float32), np.zeros(64, np.float32)
    made[:] = range(128)
    kernel = "by_other_threads"
    seen = run(EXTERNS, [made, out], kernel=kernel, block=(64, 1, 1), shared=1024).findings
    races = [sentence(each) for each in seen if each.kind is FindingKind.RACE]
    assert races and all("Bs are both" in text or "As are both" in text for text in races)
    assert any(" writes Bs[" in text for text in races)
    assert any("Bs = As + 64" in sentence(each) for each in seen)


# --- calls through pointers, and the heap


DIRECT = "call direct, ();"
BY_POINTER = "{ proto : .callprototype ()_ (); call %rd1, (), proto; }"


@pytest.mark.parametrize(("call", "hidden"), [(DIRECT, False), (BY_POINTER, True)])
def test_a_pointer_may_lead_into_a_kernel_that_nobody_launches(call: str, hidden: bool) -> None:
    module = read_module(kernels("hidden_kernel.ptx", call=call), Path("/nowhere"))
    plan = planned((), launched("kernel"))
    kinds = [note.kind for note in tensor_core_notes(module, [plan])]
    assert kinds == [FindingKind.TENSOR_CORE] * hidden
    assert origins(module)["kernel"] == ("/usr/include/library.h",) * hidden + ("sgemm.cu",)


CALLS = kernels("calls.cu")


def test_lanes_that_call_different_functions_part_and_meet_again() -> None:
    out = np.zeros(64, np.float32)

    def call(which: int, a: int, b: list[int], n: int) -> tuple[int, list[int]]:
        if which == 0:
            return a + n, [b[2], b[0], b[1]]
        if which == 1:
            return call(0, *call(0, a, b, n), n)
        return call(n % 3, *call(1, a, b, 1), n - 1) if n else (a, b)

    assert run(CALLS, [out], [0], block=(64, 1, 1), kernel="lanes").findings == ()
    want = [call(t % 3, 1, [1, 2, 3], t) for t in range(64)]
    assert out.tolist() == [a + 100 * b[0] + 64 for a, b in want]


@pytest.mark.parametrize(("kernel", "says"), values("bad_pointers.txt"))
def test_a_pointer_to_no_such_function_is_found_with_its_line(kernel: str, says: str) -> None:
    (found,) = run(CALLS, [np.zeros(1, np.float32)], [7], kernel=kernel).findings
    assert found.kind == "out-of-bounds"
    assert says in sentence(found)


def test_a_jump_within_its_table() -> None:
    out = np.zeros(1, np.float32)
    assert run(CALLS, [out], [1], block=(1, 1, 1), kernel="jumps_by_a_table").findings == ()
    assert out[0] == 1


def on_the_heap(body: str, threads: int = 64) -> SimOutcome:
    source, out = kernels("heap.cu", body=body), np.zeros(64, np.float32)
    return run(source, [out], [3], block=(threads, 1, 1), kernel="k")


@pytest.mark.parametrize(("body", "kind", "says"), table("heap.txt"))
def test_memory_of_the_heap(body: str, kind: str, says: str) -> None:
    outcome = on_the_heap(body)
    told = [sentence(found) for found in outcome.findings]
    assert {found.kind for found in outcome.findings} == ({kind} if kind else set()), told
    assert not kind or any(says in each for each in told), told


def test_findings_keep_their_memory_when_the_heap_forgets_what_was_freed() -> None:
    body = """
  float* q = static_cast<float*>(malloc(32));
  if (p) { free(p); out[0] = p[1]; }
  out[1] = q[9];
  for (int i = 0; i < 200000; ++i) free(malloc(16));"""
    outcome = on_the_heap(body, threads=1)
    told = [sentence(found) for found in outcome.findings]
    assert len(told) == 2 and "freed at line 9" in told[0] and "malloc(32)" not in told[0], told
    assert "past the end of the 32-byte allocation malloc(32)" in told[1], told


def test_the_heap_is_full_at_eight_megabytes_and_aligned() -> None:
    out = np.zeros(4, np.int32)
    source = kernels("heap.cu", body="")
    assert run(source, [out], [1 << 19], block=(1, 1, 1), kernel="fills").findings == ()
    assert out.tolist() == [15, 0, 0, 0]


@pytest.mark.parametrize("call", ["call (%r2), direct, (%r1);", "call %rd1, (%r1), proto;"])
def test_a_call_that_passes_a_register_is_refused(call: str) -> None:
    text = kernels(
        "hidden_kernel.ptx",
        call=f"proto: .callprototype ()_ (.param .b32 _); .reg .b32 %r<9>; {call}",
    )
    with pytest.raises(RefusedProgram, match="this form of call"):
        run_ptx(text, [], kernel="kernel")


# --- bits without a value


@pytest.mark.parametrize(("body", "value", "width", "known"), table("undefined_bits.txt"))
def test_each_instruction(body: str, value: str, width: str, known: str, tmp_path: Path) -> None:
    path = tmp_path / "bits.ptx"
    path.write_text(kernels("undefined_bits.ptx", body=body, value=value, width=width))
    out = np.zeros(1, np.uint64)
    found = launch(path, "k", 1, 32, [Output(out), 5]).findings
    kinds = [each.kind for each in found if each.kind is not FindingKind.RACE]
    assert kinds == [FindingKind.UNINITIALIZED_READ] * (known == "unknown")


@pytest.mark.parametrize("fills", ["value.bytes[2] = a[i + 7];", ""])
def test_a_union_filled_by_bytes_and_halves(fills: str) -> None:
    a, b = np.arange(1, 65, dtype=np.uint8), np.zeros(32, np.uint32)
    outcome = run(kernels("union.cu", fills=fills), [a, np.array([3], np.int32), b])
    kinds = [each.kind for each in outcome.findings]
    assert kinds == [FindingKind.UNINITIALIZED_READ] * (not fills)
