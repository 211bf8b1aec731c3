"""A register of which some bits have a value: what is made of these alone has one, too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness import engine, run
from ptxsim.findings.finding import Kind
from ptxsim.launching import Output, launch

PTX = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n)
{{
  .reg .b16 %h<9>;
  .reg .b32 %r<9>;  // %r0 is never set
  .reg .b64 %rd<9>;  // nor is %rd0
  .reg .pred %p<3>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [n];
  and.b32 %r2, %r0, 0xFF00FFFF;  // the third byte is known
  {body}
  st.global.{width} [%rd1], {value};
  ret;
}}
"""


@pytest.mark.parametrize(
    ("body", "value", "width", "known"),
    [
        ("", "%r2", "u32", False),
        ("", "%r2", "u8", False),
        ("and.b32 %r3, %r2, 0x00FF0000;", "%r3", "u32", True),
        ("and.b32 %r3, %r2, 0x01FF0000;", "%r3", "u32", False),
        ("or.b32 %r3, %r2, 0xFF00FFFF;", "%r3", "u32", True),
        ("or.b32 %r3, %r2, 0x7F00FFFF;", "%r3", "u32", False),
        ("xor.b32 %r3, %r2, %r2; and.b32 %r3, %r3, 0xFF0000;", "%r3", "u32", True),
        ("not.b32 %r3, %r2; bfe.u32 %r3, %r3, 16, 8;", "%r3", "u32", True),
        ("bfe.s32 %r3, %r2, 15, 8;", "%r3", "u32", False),
        ("bfe.u32 %r3, %r2, %r0, 8;", "%r3", "u32", False),
        ("shr.u32 %r3, %r2, 16;", "%r3", "u8", True),
        ("shr.u32 %r3, %r2, 16;", "%r3", "u16", False),
        ("shl.b32 %r3, %r2, 8; shr.s32 %r3, %r3, 24;", "%r3", "u32", True),
        ("shr.s32 %r3, %r2, 24;", "%r3", "u32", False),
        ("shl.b32 %r3, %r0, 8; or.b32 %r3, %r3, 5;", "%r3", "u8", True),
        ("shl.b32 %r3, %r1, %r0;", "%r3", "u32", False),
        ("prmt.b32 %r3, %r2, %r1, 0x4244;", "%r3", "u32", True),
        ("prmt.b32 %r3, %r2, %r1, 0x4214;", "%r3", "u32", False),
        ("prmt.b32 %r3, %r2, %r1, 0xAAAA;", "%r3", "u32", True),  # its sign
        ("prmt.b32 %r3, %r1, %r1, %r0;", "%r3", "u32", False),
        ("shf.l.wrap.b32 %r3, %r2, %r2, 16;", "%r3", "u8", True),
        ("shf.l.wrap.b32 %r3, %r2, %r2, 8;", "%r3", "u8", False),
        ("bfi.b32 %r3, %r1, %r2, 0, 16; bfi.b32 %r3, %r1, %r3, 24, 8;", "%r3", "u32", True),
        ("bfi.b32 %r3, %r1, %r2, 0, 16;", "%r3", "u32", False),
        ("mov.b32 {%h1, %h2}, %r2; and.b16 %h2, %h2, 255;", "%h2", "u16", True),
        ("mov.b32 {%h1, %h2}, %r2;", "%h2", "u16", False),
        ("cvt.u16.u32 %h1, %r1; mov.b32 {%h3, %h2}, %r2; mov.b32 %r3, {%h1, %h2};", "%r3", "u16",
         True),
        ("mov.b64 %rd2, {%r0, %r1}; shr.u64 %rd2, %rd2, 32; cvt.u32.u64 %r3, %rd2;", "%r3", "u32",
         True),
        ("mov.b64 %rd2, {%r1, %r0}; mov.b64 {%r3, %r4}, %rd2;", "%r3", "u32", True),
        ("mov.b64 %rd2, {%r1, %r0}; mov.b64 {%r3, %r4}, %rd2;", "%r4", "u32", False),
        ("mov.b64 %rd2, {%r1, %r0}; cvt.s64.s32 %rd2, %rd2;", "%rd2", "u64", True),
        ("mov.b64 %rd2, {%r0, %r1}; cvt.s64.s32 %rd2, %rd2;", "%rd2", "u64", False),
        ("shr.u32 %r3, %r2, 16; cvt.u32.u8 %r3, %r3;", "%r3", "u32", True),
        ("shr.u32 %r3, %r2, 17; cvt.s32.s8 %r3, %r3;", "%r3", "u32", False),
        ("shr.u32 %r3, %r2, 17; cvt.u16.u8 %h1, %r3; and.b16 %h1, %h1, 127;", "%h1", "u16", True),
        ("shl.b32 %r3, %r0, 16; add.u32 %r3, %r3, %r1;", "%r3", "u16", True),
        ("shl.b32 %r3, %r0, 16; add.u32 %r3, %r3, %r1;", "%r3", "u32", False),
        ("shl.b32 %r3, %r0, 16; mad.lo.u32 %r3, %r3, 3, %r1;", "%r3", "u16", True),
        ("and.b32 %r3, %r2, 255; add.u32 %r3, %r3, %r1; shr.u32 %r3, %r3, 16;", "%r3", "u8",
         False),
        ("setp.eq.u32 %p1, %r1, %r1; selp.b32 %r3, %r1, %r0, %p1;", "%r3", "u32", True),
        ("setp.eq.u32 %p1, %r1, %r0; selp.b32 %r3, %r1, %r1, %p1;", "%r3", "u32", False),
        ("and.b32 %r2, %r2, 0x00FF0000; mul.lo.u32 %r3, %r2, %r2;", "%r3", "u32", True),
        ("mul.hi.u32 %r3, %r2, %r1;", "%r3", "u32", False),
    ],
)  # fmt: skip
def test_each_instruction(body: str, value: str, width: str, known: bool, tmp_path: Path) -> None:
    path = tmp_path / "bits.ptx"
    path.write_text(PTX.format(body=body, value=value, width=width))
    out = np.zeros(1, np.uint64)
    found = launch(path, "k", 1, 32, [Output(out), 5], engine=engine()).findings
    kinds = [each.kind for each in found if each.kind is not Kind.RACE]
    assert kinds == [Kind.UNINITIALIZED_READ] * (not known)


# nvcc keeps each union in registers of 32 bits, which hold what the last iteration left.
UNION = """
union Value {{ unsigned char bytes[8]; unsigned short halves[4]; }};
extern "C" __global__ void k(const unsigned char* a, const int* n, unsigned* b) {{
  Value value;
  unsigned sum = 0;
#pragma unroll 1
  for (int i = 0; i < n[0]; ++i) {{
    value.bytes[0] = a[i];
    value.halves[0] = a[i + 1] * 134;
    value.halves[2] = a[i + 2] * 67;
    sum += value.halves[0];
    value.halves[3] = a[i + 3] * 31;
    value.bytes[3] = a[i + 4];
    value.halves[3] = a[i + 5] * 151;
    sum += value.halves[2];
    value.bytes[4] = a[i + 6];
    {fills}
    for (int j = 0; j < 4; ++j) sum = sum * 3 + value.halves[j];
  }}
  b[threadIdx.x] = sum;
}}
"""


@pytest.mark.parametrize("fills", ["value.bytes[2] = a[i + 7];", ""])
def test_a_union_filled_by_bytes_and_halves(fills: str) -> None:
    a, b = np.arange(1, 65, dtype=np.uint8), np.zeros(32, np.uint32)
    outcome = run(UNION.format(fills=fills), [a, np.array([3], np.int32), b])
    kinds = [each.kind for each in outcome.findings]
    assert kinds == [Kind.UNINITIALIZED_READ] * (not fills)
