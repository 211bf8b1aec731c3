"""A register of which some bits have a value: what is made of these alone has one, too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness import engine, kernels, run
from ptxsim.findings.finding import Kind
from ptxsim.launching import Output, launch


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
    path.write_text(kernels("undefined_bits.ptx", body=body, value=value, width=width))
    out = np.zeros(1, np.uint64)
    found = launch(path, "k", 1, 32, [Output(out), 5], engine=engine()).findings
    kinds = [each.kind for each in found if each.kind is not Kind.RACE]
    assert kinds == [Kind.UNINITIALIZED_READ] * (not known)


@pytest.mark.parametrize("fills", ["value.bytes[2] = a[i + 7];", ""])
def test_a_union_filled_by_bytes_and_halves(fills: str) -> None:
    a, b = np.arange(1, 65, dtype=np.uint8), np.zeros(32, np.uint32)
    outcome = run(kernels("union.cu", fills=fills), [a, np.array([3], np.int32), b])
    kinds = [each.kind for each in outcome.findings]
    assert kinds == [Kind.UNINITIALIZED_READ] * (not fills)
