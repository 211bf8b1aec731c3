"""One case: what it is, by its number, how PTX and plan are changed for it, and how it ends."""

import copy
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np

from ptxsim import Engine, RefusedProgram, SimLimits, Simulator
from ptxsim.plan import Plan

SEEDS = Path(__file__).parent / "seeds"
_LIMITS = SimLimits(seconds=0.5, steps=20_000, bytes=64 << 20)


@dataclass(frozen=True)
class Case:
    name: str  # of the seed
    ptx: str
    plan: dict[str, Any]  # as JSON


@cache
def _seeds() -> tuple[Case, ...]:
    return tuple(
        Case(path.stem, path.read_text(), json.loads(path.with_suffix(".json").read_text()))
        for path in sorted(SEEDS.glob("*.ptx"))
    )


def make_case(seed: int, number: int) -> Case:
    """The first ones are the seeds as they are."""
    seeds = _seeds()
    if number < len(seeds):
        return seeds[number]
    random = Random(f"{seed}:{number}")
    origin = random.choice(seeds)
    ptx, plan = origin.ptx, copy.deepcopy(origin.plan)
    what = random.random()
    if what < 0.85:
        ptx = mutate_ptx(ptx, random)
    if what > 0.75:
        mutate_plan(plan, random)
    return Case(origin.name, ptx, plan)


def run_case(case: Case, engine: Engine) -> str:
    """How the case ended: refused, with a finding, or without. All else it raises is a failure."""
    try:
        plan = msgspec.convert(case.plan, Plan, strict=True)
    except msgspec.ValidationError:
        return "no plan"
    try:
        simulator = Simulator(case.ptx, Path("/nowhere"), engine)
        outcome = simulator.run(plan, _buffers(plan), _LIMITS)
    except RefusedProgram as refusal:
        return f"refused {refusal.reason.name}"
    except MemoryError:
        return "out of memory"
    outcome.printed.encode()
    return f"finding {outcome.findings[0].kind.value}" if outcome.findings else "ran"


def _buffers(plan: Plan) -> dict[int, np.ndarray]:
    """A, B and C, when the plan says of them what can be."""
    sizes = [allocation.size for allocation in plan.allocations[:3]]
    return {at: np.zeros(size, np.uint8) for at, size in enumerate(sizes) if 0 <= size < 1 << 20}


_TOKEN = re.compile(r"0[fFdD][0-9a-fA-F]+|[%$.\w:]+|\s+|.")
_NUMBER = re.compile(r"-?(0[xX][0-9a-fA-F]+|\d+)")
EDGES = (
    *(0, 1, -1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 63, 64, 127, 128, 255, 256, 1023, 1024, 1025),
    *(4095, 65535, 65536, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32),
    *((1 << 56) - 1, 1 << 56, 2 << 56, 3 << 56, (1 << 63) - 1, 1 << 63, (1 << 64) - 16),
    *((1 << 64) - 1, 1 << 64, -(1 << 31), -(1 << 63), -16, 10**9, 10**30),
)
_TYPES = (
    *(f".{kind}{bits}" for kind in "bus" for bits in (8, 16, 32, 64)),
    *(".f16", ".f32", ".f64", ".pred", ".f16x2", ".bf16", ".b128", ".v2", ".v4", ".v8"),
)
_SPACES = (".global", ".shared", ".local", ".param", ".const", ".shared::cta", "")
# Operands of kinds that stand in few seeds, and directives.
_WORDS_OF_ALL_KINDS = """
    %tid.x %clock64 %laneid %envreg0 %dynamic_smem_size _ !%p1 %p1 %r1 %rd1 %f1 %fd1 %rs1
    [%rd1+0x7fffffff] [%r1] [%rd1+-16] [18446744073709551600] 0f7FC00000 0dFFFFFFFFFFFFFFFF { }
    WARP_SZ vprintf __assertfail [] () " ; , @!%p1 -%r1 0b101 077
"""
_ODD = (*_WORDS_OF_ALL_KINDS.split(), "{%r1, %r2}", "{%rd1, %rd2, %rd3, %rd4}")


def mutate_ptx(text: str, random: Random) -> str:
    lines = text.split("\n")
    body = [at for at, line in enumerate(lines) if line.strip().endswith((";", ":"))] or [0]
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 5, 9))):
        random.choice(_LINE_DEEDS)(lines, body, random)
    return "\n".join(lines)


def _swap_token(lines: list[str], body: list[int], random: Random) -> None:
    """A token becomes one that stands elsewhere in the text, in the same place of its line."""
    at, donor = random.choice(body) % len(lines), random.choice(body) % len(lines)
    tokens, others = _tokens(lines[at]), [t for t in _tokens(lines[donor]) if t.strip()]
    words = _words(tokens)
    if words and others:
        place = random.randrange(len(words))
        same = others[min(place, len(others) - 1)] if random.random() < 0.6 else None
        tokens[words[place]] = same or random.choice(others)
        lines[at] = "".join(tokens)


def _edge(lines: list[str], body: list[int], random: Random) -> None:
    """A number becomes one at the edge of what fits."""
    at = random.choice(body) % len(lines)
    places = list(_NUMBER.finditer(lines[at]))
    if places:
        place = random.choice(places)
        edge = str(random.choice(EDGES))
        lines[at] = lines[at][: place.start()] + edge + lines[at][place.end() :]


def _offset(lines: list[str], body: list[int], random: Random) -> None:
    """An address gets an offset, as "name+4" or "[%rd1+4]" have one."""
    near = [at for at in body if at < len(lines) and "[" in lines[at] and "]" in lines[at]]
    if near:
        at = random.choice(near)
        head, _, tail = lines[at].rpartition("]")
        base = head.split("+")[0] if random.random() < 0.5 else head
        lines[at] = f"{base}+{random.choice(EDGES)}]{tail}"


def _opcode(lines: list[str], body: list[int], random: Random) -> None:
    """A part of the opcode becomes another type or space, a part of another one, or nothing."""
    at, donor = random.choice(body) % len(lines), random.choice(body) % len(lines)
    words = lines[at].split()
    place = next((k for k, word in enumerate(words) if word[0] not in "@{"), None)
    if place is None:
        return
    parts = re.findall(r"\.?[^.\s]+", words[place]) or [""]
    which = random.randrange(len(parts))
    other = re.findall(r"\.?[^.\s]+", "".join(lines[donor].split()[:1])) or [""]
    parts[which] = random.choice(random.choice((_TYPES, _SPACES, other)))
    words[place] = "".join(parts)
    lines[at] = "\t" + " ".join(words)


def _odd(lines: list[str], body: list[int], random: Random) -> None:
    at = random.choice(body) % len(lines)
    tokens = _tokens(lines[at])
    words = _words(tokens)
    if words:
        tokens[random.choice(words)] = random.choice(_ODD)
        lines[at] = "".join(tokens)


def _drop_token(lines: list[str], body: list[int], random: Random) -> None:
    at = random.choice(body) % len(lines)
    tokens = _tokens(lines[at])
    if tokens:
        del tokens[random.randrange(len(tokens))]
        lines[at] = "".join(tokens)


def _drop_line(lines: list[str], body: list[int], random: Random) -> None:
    at = random.choice(body)
    if len(lines) > 1:
        del lines[at % len(lines)]


def _double_line(lines: list[str], body: list[int], random: Random) -> None:
    lines.insert(random.choice(body) % len(lines), lines[random.choice(body) % len(lines)])


def _move_lines(lines: list[str], body: list[int], random: Random) -> None:
    start = random.choice(body) % len(lines)
    moved = lines[start : start + random.choice((1, 1, 2, 5, 20))]
    del lines[start : start + len(moved)]
    target = random.randrange(len(lines) + 1)
    lines[target:target] = moved


def _any_line(lines: list[str], body: list[int], random: Random) -> None:
    """As the other deeds, but on a line that is no instruction: a directive, a declaration."""
    at = random.randrange(len(lines))
    random.choice((_edge, _odd, _drop_token, _opcode))(lines, [at], random)


_LINE_DEEDS: tuple[Callable[[list[str], list[int], Random], None], ...] = (
    *(_swap_token, _swap_token, _swap_token, _edge, _edge, _offset, _offset, _opcode, _opcode),
    *(_odd, _drop_token, _drop_line, _double_line, _move_lines, _any_line),
)


def _tokens(line: str) -> list[str]:
    return [match[0] for match in _TOKEN.finditer(line)]


def _words(tokens: list[str]) -> list[int]:
    return [at for at, token in enumerate(tokens) if token.strip() and token not in ",;"]


def mutate_plan(plan: dict[str, Any], random: Random) -> None:
    """Change some values of a plan as JSON holds it, keeping their types."""
    for _ in range(random.choice((1, 1, 2, 4))):
        places: list[tuple[Any, Any]] = []
        _find_places(plan, places)
        holder, key = random.choice(places)
        value = holder[key]
        if isinstance(value, bool) or value is None:
            continue
        if isinstance(value, int):
            near = value + random.choice((-16, -4, -1, 1, 4, 16))
            holder[key] = random.choice((near, random.choice(EDGES), -value, value * 2))
        elif isinstance(value, str):
            other_holder, other_key = random.choice(places)
            other, end = other_holder[other_key], random.choice(("", "=", "A", "x"))
            holder[key] = other if isinstance(other, str) else value + end
        elif isinstance(value, list) and value:
            place = random.randrange(len(value))
            if random.random() < 0.5:
                del value[place]
            else:
                value.insert(place, value[place])


def _find_places(value: Any, found: list[tuple[Any, Any]]) -> None:
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        found.append((value, key))
        if isinstance(value[key], (dict, list)):
            _find_places(value[key], found)
