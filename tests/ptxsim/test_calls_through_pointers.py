"""What may run in a kernel that calls through a pointer: everything in its module."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxsim.findings.finding import Kind
from ptxsim.frontend import read_module
from ptxsim.lowering.origins import origins
from ptxsim.lowering.tensor_cores import tensor_core_notes
from ptxsim.records import Launch, Plan, Size

MODULE = """\
.version 7.0
.target sm_80
.address_size 64
.visible .entry hidden() {{
  .reg .f32 %f<9>;
  .reg .b32 %r<7>;
  .loc 1 7 0
  mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {{%f1, %f2, %f3, %f4}}, {{%r1, %r2, %r3, %r4}},
    {{%r5, %r6}}, {{%f1, %f2, %f3, %f4}};
  ret;
}}
.func direct() {{
  .loc 2 1 0
  ret;
}}
.visible .entry kernel() {{
  .reg .b64 %rd<2>;
  mov.u64 %rd1, hidden;
  {call}
  ret;
}}
.file 1 "/usr/include/library.h"
.file 2 "sgemm.cu"
"""
DIRECT = "call direct, ();"
BY_POINTER = "{ proto : .callprototype ()_ (); call %rd1, (), proto; }"


@pytest.mark.parametrize(("call", "hidden"), [(DIRECT, False), (BY_POINTER, True)])
def test_a_pointer_may_lead_into_a_kernel_that_nobody_launches(call: str, hidden: bool) -> None:
    module = read_module(MODULE.format(call=call), Path("/nowhere"))
    launch = Launch(
        kernel="kernel", grid=(1, 1, 1), block=(32, 1, 1), shared_bytes=0, params=b"", pointers=()
    )
    plan = Plan(size=Size(dims={"n": 1}), allocations=(), operations=(launch,))
    kinds = [note.kind for note in tensor_core_notes(module, [plan])]
    assert kinds == [Kind.TENSOR_CORE] * hidden
    assert ("kernel" in origins(module)) == hidden
