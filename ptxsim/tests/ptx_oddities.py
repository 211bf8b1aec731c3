"""Odd texts of PTX, each with what the kernel round it must store.

``Odd(name, body, says)``: the body of a kernel whose register %r1 is 1 before and is stored behind
it. ``says`` is the number that both the simulator and ptxas's machine code must store, or words
of the reader's refusal; what is refused never runs. ``before`` stands before the kernel.
Much of what is refused ptxas takes too, and reads in its own way.
"""

from __future__ import annotations

from typing import NamedTuple


class Odd(NamedTuple):
    name: str
    body: str
    says: int | str
    before: str = ""
    calls: bool = False  # its machine code calls a function, so the constant cannot be read there


TWO = "mov.u32 %r1, 2;"
THREE = "mov.u32 %r1, 3;"
SHARED = (
    ".shared .align 8 .b32 s[8]; .reg .b32 a; mov.u32 a, s; add.u32 a, a, 4;"
    "st.shared.u32 [s], 1; st.shared.u32 [s+4], 2; st.shared.u32 [s+8], 3; st.shared.u32 [s+16], 5;"
)
# Arrays of a module and of a kernel, each with a store, so that ptxas keeps it.
MODULES = (
    ".shared .align 2 .b8 {0}_x[6]; .shared .align 8 .b8 {0}_unused[64];"
    ".shared .align 4 .b8 {0}_y[20]; .extern .shared .align {1} .b8 {0}_dyn[];"
)
ARRAYS = (
    ".shared .align 4 .b8 a[100]; .shared .align 16 .b8 b[200]; .shared .align 1 .b8 c[3];"
    "st.shared.u8 [c], 1; st.shared.u32 [b], 1; st.shared.u32 [a], 1;"
    "st.shared.u16 [{0}_x], 1; st.shared.u32 [{0}_y], 1;"
)
PRED = "setp.eq.u32 %q1, 1, 2;"  # false

ODDITIES = (
    # comments
    Odd("line comment", f"// {TWO}", 1),
    Odd("line comment ends", f"// \n{TWO}", 2),
    Odd("block comment", f"/* {TWO} */", 1),
    Odd("blocks do not nest", f"/* /* */ {TWO} //*/", 2),
    Odd("a line comment inside a block", f"/* // */ {TWO}", 2),
    Odd("a block inside a line comment", f"// /* \n{TWO}// */", 2),
    Odd("a backslash does not join lines", f"// \\\n{TWO}", 2),
    Odd("nor does a trigraph", f"// ??/\n{TWO}", 2),
    Odd("a carriage return ends no comment", f"// \r{TWO}", 1),
    Odd("a carriage return is a space", "mov.u32\r%r1,\r2\r;", 2),
    Odd("shortest block", f"/**/{TWO}", 2),
    Odd("slash star slash", f"/*/ {TWO} /**/", 1),
    Odd("stars", f"/*****/{TWO}", 2),
    Odd("a comment is a space", "mov/**/.u32/**/%r1/**/,/**/2/**/;", 2),
    Odd("a comment in a name", "mov.u/**/32 %r1, 2;", "expected ','"),
    Odd("an open comment", "/* ", "no token"),
    Odd("a form feed in a comment", f"// \f{TWO}", "no place in PTX"),
    Odd("a form feed", "mov.u32\f%r1, 2;", "no place in PTX"),
    Odd("a vertical tab", "mov.u32\v%r1, 2;", "no place in PTX"),
    Odd("control-z, a space to ptxas", f"\x1a{TWO}", "no place in PTX"),
    Odd("NUL", f"\0{TWO}", "no place in PTX"),
    Odd("not ASCII", f"// é\n{TWO}", "no place in PTX"),
    Odd("a line number of a preprocessor", f'\n# 1 "a"\n{TWO}', "no token"),
    Odd("a macro", f"\n#define mov add\n{TWO}", "no token"),
    # strings
    Odd("a comment in a string", f'.pragma "/*"; {TWO} .pragma "*/";', 2),
    Odd("slashes in a string", f'.pragma "//"; {TWO}', 2),
    Odd("a semicolon in a string", f'.pragma "; {THREE} "; {TWO}', 2),
    Odd("a brace in a string", f'.pragma "}}"; {TWO}', 2),
    Odd("several strings", f'.pragma "a", "b"; {TWO}', 2),
    Odd("a string of two lines", f'.pragma "a\n{TWO}\n";', "no token"),
    Odd("a backslash in a string", f'.pragma "a\\"; {TWO} //";', "no token"),
    Odd("an open string", f'.pragma "a; {TWO}', "no token"),
    Odd("two strings without a comma", f'.pragma "a" "b"; {TWO}', "expected ';'"),
    # .loc and its kind
    Odd("an instruction behind .loc", f".loc 1 1 1 {TWO}", 2),
    Odd(".loc over three lines", f".loc 1\n1\n1\n{TWO}", 2),
    Odd("a comment in .loc", f".loc 1 1 /* \n */ 1 {TWO}", 2),
    Odd(".loc in hexadecimal and octal", f".loc 0x1 010 1U {TWO}", 2),
    Odd(".loc of an unknown file", f".loc 77 1 1 {TWO}", 2),
    Odd(".loc with a semicolon", f".loc 1 1 1; {TWO}", "expected an instruction"),
    Odd(".loc with two numbers", f".loc 1 1\n{TWO}", "expected a number"),
    Odd(".loc with four numbers", f".loc 1 1 1 1\n{TWO}", "expected an instruction"),
    Odd(".loc inside an instruction", "mov.u32 .loc 1 1 1 %r1, 2;", "expected"),
    Odd(".file in a function", f'.file 1 "a" {TWO}', "a directive of a function"),
    Odd(".section in a function", f".section .x {{ }} {TWO}", "a directive of a function"),
    Odd("a section on one line", TWO, 2, ".section .debug_a { .b8 1, 2 }"),
    Odd("braces in comments of a section", TWO, 2, ".section .debug_b { .b8 1 // }\n /* } */ }"),
    Odd("labels in a section", TWO, 2, ".section .debug_c { x: .b8 1 y: .b32 x+4 .b64 y-x }"),
    Odd("code in a section", TWO, "expected ':'", f".section .debug_d {{ {THREE} }}"),
    Odd("a string in a section", TWO, "data of a section", '.section .debug_e { .b8 1 "}" }'),
    Odd("@@DWARF", TWO, "expected a declaration", "@@DWARF .byte 1, 2\n"),
    # statements
    Odd("one line for all", f"{THREE}{TWO}", 2),
    Odd("a line for every token", "mov\n.u32\n%r1\n,\n2\n;", 2),
    Odd("no space at all", "mov.u32%r1,2;", 2),
    Odd("a semicolon too many", f"; {TWO}", "expected an instruction"),
    Odd("a comma too many", "add.u32 %r1, 1, 1,;", "expected an operand"),
    Odd("no semicolon before a brace", "{mov.u32 %r1, 2}", "expected ','"),
    Odd("a macro of an assembler", ".macro x", "a directive of a function"),
    Odd("a condition of an assembler", f".if 0\n{TWO}\n.endif", "a directive of a function"),
    Odd("guards with spaces", f"{PRED} @ ! %q1 {TWO} @\n%q1\n{THREE}", 2),
    Odd("a guarded block", f"{PRED} @%q1 {{ {TWO} }}", "expected an instruction"),
    Odd("a guarded declaration", f"{PRED} @%q1 .reg .b32 x; {TWO}", "expected an instruction"),
    Odd("a constant guard", f"@0 {TWO}", "expected a predicate"),
    Odd("guard and label", f"{PRED} @%q1 L: {TWO}", "expected an operand"),
    Odd("a guard that is no predicate", f"@%r1 {TWO}", "%r1 is no predicate"),
    Odd("a predicate that is none", "setp.eq.u32 %q1|%r1, 1, 2;", "%r1 is no predicate"),
    Odd("two guards", f"{PRED} @%q1 @%q1 {TWO}", "expected an instruction"),
    # names
    Odd("a register of an inner scope", f"{{.reg .b32 %r1; {TWO}}}", 1),
    Odd("a family of an inner scope", f"{{.reg .b32 %r<3>; {TWO}}}", 1),
    Odd("a family too small for the name", f"{{.reg .b32 %r<1>; {TWO}}}", 2),
    Odd("a single before a family", "{.reg .b32 x1; mov.u32 x1, 2; {.reg .b32 x<3>;"
        "mov.u32 x1, 3;} mov.u32 %r1, x1;}", 2),
    Odd("a family before a single", "{.reg .b32 x<3>; mov.u32 x1, 2; {.reg .b32 x1;"
        "mov.u32 x1, 3;} mov.u32 %r1, x1;}", 2),
    Odd("declared behind its use", f"{{ {TWO} .reg .b32 %r1; {THREE} }}", 2),
    Odd("a scope that ended", "{.reg .b32 x; mov.u32 x, 2;} mov.u32 %r1, x;", "x is not declared"),
    Odd("sixty scopes", "{" * 60 + TWO + "}" * 60, 2),
    Odd("declared twice", f".reg .b32 x; .reg .b32 x; {TWO}", "declared twice"),
    Odd("declared twice in two types", f".reg .b32 x; .reg .f32 x; {TWO}", "declared twice"),
    Odd("a family declared twice", f".reg .b32 %r<12>; {TWO}", "declared twice"),
    Odd("a single of a family", f".reg .b32 %r3; {TWO}", "declared twice"),
    Odd("a family round a single", f".reg .b32 x1; .reg .b32 x<3>; {TWO}", "declared twice"),
    Odd("a shared variable named like a register", f".shared .b32 x; .reg .b32 x; {TWO}",
        "declared twice"),
    Odd("%r01, which ptxas takes for %r1", "mov.u32 %r01, 2;", "%r01 is not declared"),
    Odd("%r4294967297, which ptxas takes for %r1", "mov.u32 %r4294967297, 2;", "not declared"),
    Odd("beyond the family", "mov.u32 %r9, 2;", "%r9 is not declared"),
    Odd("the family's stem", "mov.u32 %r, 2;", "%r is not declared"),
    Odd("a family that ends in a digit", ".reg .b32 x1<3>; mov.u32 x12, 2;", "x12 is not declared"),
    Odd("a family in hexadecimal", ".reg .b32 x<0x3>; mov.u32 x2, 2; mov.u32 %r1, x2;", 2),
    Odd("a family in octal", ".reg .b32 x<010>; mov.u32 x7, 2; mov.u32 %r1, x7;", 2),
    Odd("a family with spaces", ".reg .b32 x < 3 > , y; mov.u32 x2, 2; mov.u32 %r1, x2;", 2),
    Odd("a register named mov", ".reg .b32 mov; mov.u32 mov, 2; mov.u32 %r1, mov;", 2),
    Odd("a register named like the kernel's parameter",
        "{.reg .b32 p; mov.u32 p, 2; mov.u32 %r1, p;}", 2),
    Odd("a register named %laneid",
        "{.reg .b32 %laneid; mov.u32 %laneid, 2; mov.u32 %r1, %laneid;}", 2),
    Odd("a register named $", ".reg .b32 $x; mov.u32 $x, 2; mov.u32 %r1, $x;", 2),
    Odd("a register with an at sign", ".reg .b32 x@1; mov.u32 x@1, 2;", "expected ';'"),
    Odd("a register with a point", ".reg .b32 x.y; mov.u32 x.y, 2;", "expected ';'"),
    Odd("a register that nobody names", ".reg .b32 _; mov.u32 _, 2;", "no name for a register"),
    Odd("a vector register", ".reg .v2 .b32 v; mov.u32 v.x, 2; mov.u32 %r1, v.x;", "type .v2"),
    Odd("a register named like a shared variable outside",
        ".shared .b32 x; {.reg .b32 x; mov.u32 x, 2; mov.u32 %r1, x;}", 2),
    Odd("a module's variable that a register hides",
        "{.reg .b32 hidden; mov.u32 hidden, 2; mov.u32 %r1, hidden;}", 2,
        ".global .b32 hidden = 3;"),
    Odd("a name of WARP_SZ", f".reg .b32 WARP_SZ; {TWO}", "no name for a register"),
    # labels
    Odd("a label of an inner scope", f"bra L; {{L: {THREE} bra E;}} L: {TWO} E:", 2),
    Odd("a label outside", f"{{bra L; {THREE}}} L: {TWO}", 2),
    Odd("a label inside, from outside", f"bra L; {{L: {TWO}}}", "there is no label L"),
    Odd("the inner label, though it comes later",
        f"bra S; L: bra E; S: {{ bra L; {THREE} L: {TWO} }} E:", 2),
    Odd("the inner label, though the outer comes later",
        f"{{ bra L; {THREE} L: {TWO} bra E; }} L: {THREE} E:", 2),
    Odd("a label twice", f"bra L; L: {TWO} L:", "declared twice"),
    Odd("a label named like a register", f".reg .b32 x; bra x; x: {TWO}", "declared twice"),
    Odd("a label named mov", f"bra mov; {THREE} mov: {TWO}", 2),
    Odd("two labels", f"bra A; {THREE} A : B\n: {TWO}", 2),
    Odd("a label and a brace", f"bra A; {THREE} A: {{ {TWO} }}", 2),
    Odd("a label and nothing", f"A: ; {TWO}", "expected an instruction"),
    Odd("a table whose label is inside", "bra S; A: bra E; S: {T: .branchtargets A, B;"
        f"mov.u32 %r2, 0; brx.idx %r2, T; A: {TWO} B: }} E:", 2),
    Odd("a table whose label is outside", "T: .branchtargets A, B; mov.u32 %r2, 0;"
        f"{{ brx.idx %r2, T; A: mov.u32 %r1, 4; }} A: {TWO} B:", 2),
    Odd("a table without a label", f".branchtargets A, B; A: {TWO} B:", "directive of a function"),
    # numbers
    Odd("octal", "mov.u32 %r1, 010;", 8),
    Odd("no octal", "mov.u32 %r1, 08;", "no token"),
    Odd("hexadecimal", "mov.u32 %r1, 0X1fU;", 31),
    Odd("binary", "mov.u32 %r1, 0b101;", 5),
    Odd("unsigned", "mov.u32 %r1, 010U;", 8),
    Odd("a small u", "mov.u32 %r1, 10u;", "no token"),
    Odd("33 bits", "mov.u32 %r1, 4294967298;", 2),
    Odd("64 bits", "mov.u32 %r1, 0xffffffff00000002;", 2),
    Odd("65 bits", "mov.u32 %r1, 18446744073709551618;", "64 bits"),
    Odd("minus", "mov.u32 %r1, -\n2;", 0xFFFFFFFE),
    Odd("minus minus", "mov.u32 %r1, --2;", 2),
    Odd("plus", "mov.u32 %r1, +2;", "expected an operand"),
    Odd("complement", "mov.u32 %r1, ~0xfffffffd;", 2),
    Odd("a sum", "mov.u32 %r1, 1+2*3;", 7),
    Odd("brackets", "mov.u32 %r1, (1+2)*3;", 9),
    Odd("a difference", "mov.u32 %r1, 9-4-3;", 2),
    Odd("minus before a sum", "mov.u32 %r1, -1+3;", 2),
    Odd("minus before a product", "mov.u32 %r1, -2*3+8;", 2),
    Odd("minus before octal", "mov.u32 %r1, -010+012;", 2),
    Odd("a shift", "mov.u32 %r1, 1+1<<3;", 16),
    Odd("a shift by too much", "mov.u32 %r1, 1<<64;", "a shift by 64"),
    Odd("a shift to the right", "mov.u32 %r1, 256>>2;", "expected"),
    Odd("a mask", "mov.u32 %r1, (0xF0 & 0xCC) | 0xAA;", 234),
    Odd("operators without brackets", "mov.u32 %r1, 1|6^2&3+1;", 7),
    Odd("minus before a mask", "mov.u32 %r1, -1&7;", 7),
    Odd("a complement before a mask", "mov.u32 %r1, ~1&7;", 6),
    Odd("a quotient", "mov.u32 %r1, 7/2;", "no token"),
    Odd("a choice", "mov.u32 %r1, 1?2:3;", "no token"),
    Odd("a cast", "mov.u32 %r1, (.s64)5;", "expected"),
    Odd("the size of a warp", "mov.u32 %r1, WARP_SZ;", 32),
    Odd("letters behind a number", "mov.u32 %r1, 2abc;", "no token"),
    Odd("a float's bits", "mov.b32 %r1, 0f3f800000;", 0x3F800000),
    Odd("a long float", ".reg .f32 f; mov.f32 f, 0f3F8000000;", "no token"),
    Odd("a double as float",
        ".reg .f32 f; mov.f32 f, 0d3FF0000010000001; mov.b32 %r1, f;", 0x3F800001),
    Odd("a decimal", ".reg .f32 f; mov.f32 f, 1.5; mov.b32 %r1, f;", 0x3FC00000),
    Odd("a negative decimal", ".reg .f32 f; mov.f32 f, -1.5; mov.b32 %r1, f;", 0xBFC00000),
    Odd("a decimal with zeros", ".reg .f32 f; mov.f32 f, 010.5; mov.b32 %r1, f;", 0x41280000),
    Odd("an exponent", ".reg .f32 f; mov.f32 f, 1e3; mov.b32 %r1, f;", 0x447A0000),
    Odd("beyond float", ".reg .f32 f; mov.f32 f, 1e39; mov.b32 %r1, f;", 0x7F800000),
    Odd("a decimal without a digit before", ".reg .f32 f; mov.f32 f, .5;", "expected an operand"),
    Odd("minus a float's bits", ".reg .f32 f; mov.f32 f, -0f3F800000;", "sign of such a number"),
    Odd("a double's bits", ".reg .b64 f; .reg .b32 h; mov.b64 f, 0d3FF0000000000000;"
        "mov.b64 {h, %r1}, f;", 0x3FF00000),
    Odd("a float's bits as double", ".reg .f64 f; .reg .b32 h; mov.f64 f, 0f3F800000;"
        "mov.b64 {%r1, h}, f;", 0x3F800000),
    # addresses and other operands
    Odd("an offset", SHARED + "ld.shared.u32 %r1, [ s + 4 ];", 2),
    Odd("an octal offset", SHARED + "ld.shared.u32 %r1, [s+010];", 3),
    Odd("a hexadecimal offset", SHARED + "ld.shared.u32 %r1, [s+0x4];", 2),
    Odd("a sum of offsets", SHARED + "ld.shared.u32 %r1, [s+4+4];", 3),
    Odd("a product of offsets", SHARED + "ld.shared.u32 %r1, [s+4*2];", 3),
    Odd("a negative offset", SHARED + "ld.shared.u32 %r1, [a + -4];", 1),
    Odd("an octal offset of a register", SHARED + "ld.shared.u32 %r1, [a+014];", 5),
    Odd("minus an offset", SHARED + "ld.shared.u32 %r1, [a-4];", "expected"),
    Odd("an index", SHARED + "ld.shared.u32 %r1, s[1];", "expected"),
    Odd("an index in brackets", SHARED + "ld.shared.u32 %r1, [s[1]];", "expected"),
    Odd("a sum of addresses", SHARED + "ld.shared.u32 %r1, [s+a];", "an integer"),
    Odd("a vector with spaces",
        ".reg .b64 h; mov.b64 h , { 2 , 3 } ; cvt.u32.u64 %r1 , h ;", 2),
    Odd("a comma in a vector", ".reg .b64 h; mov.b64 h, {2,3,};", "expected an operand"),
    Odd("two predicates",
        f"setp.eq.u32 %q1 | %q2, 1, 2; @%q2 {TWO} @%q1 {THREE}", 2),
    Odd("a predicate turned round",
        f"setp.eq.u32 %q1, 1, 1; setp.eq.and.u32 %q2, 1, 1, ! %q1; @%q2 {TWO}", 1),
    Odd("an element with a space", "mov.u32 %r1, %tid .x;", "expected an operand"),
    Odd("a comment between space and type", f"{SHARED} ld.shared/*.u8*/.u32 %r1, [s+4];", 2),
    # variables and functions
    Odd("two arrays of one declaration",
        ".shared .b32 t[2], u; st.shared.u32 [u], 2; st.shared.u32 [t+4], 3;"
        "ld.shared.u32 %r1, [u];", 2),
    Odd("a shared variable in each of two scopes",
        "{.shared .b32 v; st.shared.u32 [v], 2;} {.shared .b32 v; st.shared.u32 [v], 3;}"
        f"{TWO}", 2),
    Odd("a global variable in a function", f".global .b32 x = 5; {TWO}", "directive of a function"),
    Odd("a parameter with the name of one of the kernel",
        "{.param .b32 p; st.param.b32 [p], 2;}", "declared twice"),
    Odd("a parameter inside one of that name",
        "{.param .b32 q; {.param .b32 q; st.param.b32 [q], 2;}}", "declared twice"),
    Odd("a parameter declared outside braces",
        ".param .b32 in; .param .b32 out; st.param.b32 [in], 1;"
        "call.uni (out), plus1, (in); ld.param.b32 %r1, [out];", 2,
        ".func (.param .b32 o) plus1(.param .b32 i)"
        "{.reg .b32 x; ld.param.b32 x, [i]; add.u32 x, x, 1; st.param.b32 [o], x; ret;}", True),
    Odd("a function named mov", TWO, 2, ".func mov() { ret; }"),
    Odd("declared and defined", "call.uni later, ();" + TWO, 2,
        ".func later();\n.func later() { ret; }"),
    Odd("defined twice", TWO, "declared twice", ".func f() { ret; } .func f() { ret; }"),
    Odd("a weak function twice", TWO, "declared twice",
        ".weak .func f() { ret; } .weak .func f() { ret; }"),
    Odd("a function named like a variable", TWO, "declared twice",
        ".global .b32 f; .func f() { ret; }"),
    Odd("a variable twice", TWO, "declared twice", ".global .b32 x; .global .b32 x;"),
    Odd("a parameter twice", TWO, "declared twice",
        ".func f(.param .b32 a, .param .b32 a) { ret; }"),
    Odd("a parameter in a register", TWO, "expected '.param'", ".func f(.reg .b32 a) { ret; }"),
    Odd("a body after a body", TWO, "expected a declaration", ".func f() { ret; } { ret; }"),
    Odd("bounds with a comment", TWO, 2, ".entry e1() .maxntid 1/*, 2*/, 3 { ret; }"),
    Odd("bounds with four sides", TWO, "expected '{'", ".entry e2() .maxntid 1,2,3,4 { ret; }"),
    Odd("bounds twice", TWO, "second time", ".entry e3() .maxntid 2 .maxntid 4 { ret; }"),
    Odd("bounds in the body", TWO, "directive of a function", ".entry e4() { .maxntid 2; ret; }"),
    Odd("another version", TWO, "second time", ".version 8.0"),
    Odd("two files of one number", TWO, "two files", '.file 1 "x"\n.file 1 "y"'),
    Odd("several files on a line", TWO, 2, '.file 7 "x" .file\n8\n"y", 1, 2'),
    Odd("a kernel's second array", ARRAYS.format("m1") + "mov.u32 %r1, b;", 112,
        MODULES.format("m1", 4)),
    Odd("a kernel's last array", ARRAYS.format("m2") + "mov.u32 %r1, c;", 312,
        MODULES.format("m2", 4)),
    Odd("a module's first array", ARRAYS.format("m3") + "mov.u32 %r1, m3_x;", 316,
        MODULES.format("m3", 4)),
    Odd("a module's last array", ARRAYS.format("m4") + "mov.u32 %r1, m4_y;", 324,
        MODULES.format("m4", 4)),
    Odd("dynamic shared memory", ARRAYS.format("m5") + "mov.u32 %r1, m5_dyn;", 352,
        MODULES.format("m5", 4)),
    Odd("dynamic shared memory at a multiple", ARRAYS.format("m6") + "mov.u32 %r1, m6_dyn;", 1024,
        MODULES.format("m6", 1024)),
    Odd("dynamic shared memory alone", "mov.u32 %r1, m7_dyn;", 0, MODULES.format("m7", 128)),
    Odd("an instruction outside", TWO, "expected a declaration", THREE),
)  # fmt: skip
