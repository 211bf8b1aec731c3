"""Writes random, well-defined fragments of C++ that nvcc and g++ both take.

A fragment works on 13 variables (three int, three unsigned, two long long, three float, two
double) by assignments, branches and short loops. Whatever C++ or CUDA leave undefined is fenced:
shifts are masked, divisors are never zero, signed sums go through unsigned, NaNs have one pattern.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

VARIABLES = {
    "int": ("i0", "i1", "i2"),
    "unsigned": ("u0", "u1", "u2"),
    "long long": ("l0", "l1"),
    "float": ("f0", "f1", "f2"),
    "double": ("d0", "d1"),
}
COUNT = sum(map(len, VARIABLES.values()))

# Per result type: templates whose fields name the type of each operand.
S, U, L, F, D = "{int}", "{unsigned}", "{long long}", "{float}", "{double}"
TEMPLATES: dict[str, tuple[str, ...]] = {
    "int": (
        f"add({S}, {S})", f"sub({S}, {S})", f"mul({S}, {S})", f"add(mul({S}, {S}), {S})",
        f"quotient({S}, {S})", f"leftover({S}, {S})",
        f"({S} & {S})", f"({S} | {S})", f"({S} ^ ~{S})", f"({S} & {S} ^ {S} | {S})",
        f"({S} >> ({U} & 31))", f"(int)((unsigned){S} << ({U} & 31))",
        f"min({S}, {S})", f"max({S}, {S})", f"max(min({S}, {S}), {S})", f"magnitude({S})",
        f"__mulhi({S}, {S})", f"__mul24({S}, {S})", f"__hadd({S}, {S})", f"__rhadd({S}, {S})",
        f"__popc({U})", f"__clz({S})", f"__ffs({S})", f"__popcll({L})", f"__clzll({L})",
        f"__ffsll({L})", f"__dp4a({S}, {S}, {S})",
        f"(int)(signed char){S}", f"(int)(short){S}", f"(int)(unsigned char){S}", f"(int){L}",
        f"__float2int_rz({F})", f"__float2int_rn({F})", f"__float2int_ru({F})",
        f"__float2int_rd({F})", f"__double2int_rz({D})", f"__double2int_rn({D})",
        f"__double2int_ru({D})", f"bits({F})", f"high({D})", f"low({D})",
        f"({F} < {F})", f"({D} >= {D})", f"!({F} == {F})", f"({U} <= {U} && {L} > {L})",
        f"(isnan({F}) || {D} < {D})",
    ),
    "unsigned": (
        f"({U} + {U})", f"({U} - {U})", f"({U} * {U} + {U})", f"({U} / ({U} | 1u))",
        f"({U} % ({U} | 1u))", f"({U} / 7u)", f"({U} % 1000u)", f"({U} >> ({U} & 31))",
        f"({U} << ({U} & 31))", f"({U} & {U} | ~{U})", f"({U} ^ {U} ^ {U})",
        f"(({U} >> ({U} & 31)) & 0x3ffu)", f"min({U}, {U})", f"max({U}, {U})",
        f"__umulhi({U}, {U})", f"__umul24({U}, {U})", f"__uhadd({U}, {U})", f"__urhadd({U}, {U})",
        f"__brev({U})", f"__byte_perm({U}, {U}, {U})", f"__sad({S}, {S}, {U})",
        f"__usad({U}, {U}, {U})", f"__funnelshift_l({U}, {U}, {U})",
        f"__funnelshift_r({U}, {U}, {U})", f"__funnelshift_lc({U}, {U}, {U})",
        f"__funnelshift_rc({U}, {U}, {U})", f"__float2uint_rz({F})", f"__float2uint_rn({F})",
        f"__double2uint_rz({D})", f"(unsigned){S}", f"(unsigned)({L} >> 32)",
        f"(unsigned)(unsigned short){U}", f"half_bits({F})",
    ),
    "long long": (
        f"add({L}, {L})", f"sub({L}, {L})", f"mul({L}, {L})", f"quotient({L}, {L})",
        f"leftover({L}, {L})", f"((long long){S} * {S})", f"add((long long){S} * {S}, {L})",
        f"(long long)((unsigned long long){U} * {U})", f"({L} & {L})", f"({L} | ~{L})",
        f"({L} ^ {L})", f"({L} >> ({U} & 63))",
        f"(long long)((unsigned long long){L} << ({U} & 63))",
        f"(long long)((unsigned long long){L} >> ({U} & 63))", f"min({L}, {L})", f"max({L}, {L})",
        f"__mul64hi({L}, {L})", f"(long long)__umul64hi({L}, {L})", f"(long long)__brevll({L})",
        f"__float2ll_rz({F})", f"__double2ll_rn({D})", f"bits({D})", f"(long long){S}",
        f"(long long){U}", f"(long long)(((unsigned long long){U} << 32) | {U})",
    ),
    "float": (
        f"({F} + {F})", f"({F} - {F})", f"({F} * {F})", f"({F} / {F})", f"fmaf({F}, {F}, {F})",
        f"fmaf(-{F}, {F}, {F})", f"({F} * {F} + {F})", f"(-{F})", f"fabsf({F})",
        f"fminf({F}, {F})", f"fmaxf({F}, {F})", f"sqrtf(fabsf({F}))", f"copysignf({F}, pure({F}))",
        f"floorf({F})", f"ceilf({F})", f"truncf({F})", f"rintf({F})",
        f"__frcp_rn({F})",
        f"(float){S}", f"(float){U}", f"(float){L}", f"(float){D}",
        f"as_float({S})", f"through_half({F})",
        f"({F} > {F} ? {F} : {F})", f"({S} < {S} ? {F} : {F})",
    ),
    "double": (
        f"({D} + {D})", f"({D} - {D})", f"({D} * {D})", f"({D} / {D})", f"fma({D}, {D}, {D})",
        f"(-{D})", f"fabs({D})", f"fmin({D}, {D})", f"fmax({D}, {D})", f"sqrt(fabs({D}))",
        f"floor({D})", f"trunc({D})", f"rint({D})", f"((double){F} * {F})",
        f"(double){F}", f"(double){S}", f"(double){U}", f"(double){L}", f"as_double({L})",
        f"__hiloint2double({S}, {S})", f"({U} > {U} ? {D} : {D})",
    ),
}  # fmt: skip
# Rounding other than to nearest, and saturation.
DIRECTED: dict[str, tuple[str, ...]] = {
    "float": (
        f"__fadd_rz({F}, {F})", f"__fadd_ru({F}, {F})", f"__fadd_rd({F}, {F})",
        f"__fmul_rz({F}, {F})", f"__fmul_ru({F}, {F})", f"__fmaf_rz({F}, {F}, {F})",
        f"__fdiv_rz({F}, {F})", f"__fsqrt_ru(fabsf({F}))", f"__saturatef({F})",
        f"__int2float_rz({S})", f"__ll2float_ru({L})", f"__double2float_rz({D})",
        f"__double2float_rd({D})",
    ),
    "double": (f"__dadd_rd({D}, {D})", f"__dmul_rz({D}, {D})", f"__fma_ru({D}, {D}, {D})"),
}  # fmt: skip
CONSTANTS: dict[str, tuple[str, ...]] = {
    "int": ("0", "1", "-1", "31", "255", "-77", "2147483647", "(-2147483647 - 1)"),
    "unsigned": ("0u", "1u", "33u", "0xffu", "0x80000000u", "0xffffffffu", "0x5140u"),
    "long long": ("0ll", "-1ll", "1ll << 33", "0x7fffffffffffffffll", "-12345678901ll"),
    "float": ("0.0f", "-0.0f", "1.0f", "0.3f", "-2.5f", "1e-40f", "3e38f", "16777215.0f"),
    "double": ("0.0", "-1.5", "0.1", "1e300", "4e-320", "9007199254740993.0"),
}


@dataclass
class Generator:
    """One fragment per seed; the same seed gives the same text."""

    seed: int
    directed: bool  # half of the floating-point operations are from DIRECTED
    random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def fragment(self) -> str:
        """A function body that changes the variables."""
        return "\n".join(self._statement(depth=0) for _ in range(14))

    def _statement(self, depth: int) -> str:
        indent = "  " * (depth + 1)
        choice = self.random.random()
        if depth < 2 and choice < 0.12:
            inner = "\n".join(self._statement(depth + 1) for _ in range(2))
            other = self._statement(depth + 1)
            condition = self._expression("int", 1)
            return f"{indent}if ({condition}) {{\n{inner}\n{indent}}} else {{\n{other}\n{indent}}}"
        if depth < 2 and choice < 0.18:
            inner = "\n".join(self._statement(depth + 1) for _ in range(2))
            count = f"({self._expression('unsigned', 1)} & 3u)"
            q = f"q{depth}"
            return f"{indent}for (unsigned {q} = {count}; {q} > 0; --{q}) {{\n{inner}\n{indent}}}"
        kind = self.random.choice(list(VARIABLES))
        target = self.random.choice(VARIABLES[kind])
        wrap = {"float": "pure({})", "double": "pure({})"}.get(kind, "{}")
        return f"{indent}{target} = {wrap.format(self._expression(kind, 2))};"

    def _expression(self, kind: str, depth: int) -> str:
        if depth == 0 or self.random.random() < 0.15:
            if self.random.random() < 0.2:
                return f"({self.random.choice(CONSTANTS[kind])})"
            return self.random.choice(VARIABLES[kind])
        directed = self.directed and kind in DIRECTED and self.random.random() < 0.5
        template = self.random.choice((DIRECTED if directed else TEMPLATES)[kind])
        while "{" in template:
            operand = template[template.index("{") + 1 : template.index("}")]
            template = template.replace(
                "{" + operand + "}", self._expression(operand, depth - 1), 1
            )
        return template


def program(seeds: range, *, directed: bool) -> tuple[str, list[str]]:
    """C++ that both compilers take, and the body of each of its functions ``fragment_<seed>``."""
    bodies = [Generator(seed, directed).fragment() for seed in seeds]
    arguments = ", ".join(f"{kind}& {name}" for kind, names in VARIABLES.items() for name in names)
    functions = [
        f"DEVICE void fragment_{seed}({arguments}) {{\n{body}\n}}"
        for seed, body in zip(seeds, bodies, strict=True)
    ]
    return "\n\n".join(functions), bodies
