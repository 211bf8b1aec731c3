"""Writes random, well-defined fragments of C++ that nvcc and g++ both take.

A fragment works on 13 variables (three int, three unsigned, two long long, three float, two
double) by assignments, branches and short loops. Whatever C++ or CUDA leave undefined is fenced:
shifts are masked, divisors are never zero, signed sums go through unsigned, NaNs have one pattern.
"""

from dataclasses import dataclass, field
from pathlib import Path
from random import Random

VARIABLES = {
    "int": ("i0", "i1", "i2"),
    "unsigned": ("u0", "u1", "u2"),
    "long long": ("l0", "l1"),
    "float": ("f0", "f1", "f2"),
    "double": ("d0", "d1"),
}
COUNT = sum(map(len, VARIABLES.values()))


def _expressions(use: str) -> dict[str, list[str]]:
    """Read the rows of expressions.txt for one use, by the type of their results."""
    found: dict[str, list[str]] = {}
    for line in Path(__file__).with_name("expressions.txt").read_text().splitlines()[1:]:
        of, kind, text = (cell.strip() for cell in line.split("¦"))
        if of == use:
            found.setdefault(kind, []).append(text)
    return found


TEMPLATES, CONSTANTS = _expressions("templates"), _expressions("constants")
DIRECTED = _expressions("directed")  # rounding other than to nearest, and saturation


@dataclass
class Generator:
    """One fragment per seed; the same seed gives the same text."""

    seed: int
    directed: bool  # half of the floating-point operations are from DIRECTED
    random: Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)

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
