"""``groups`` in a lab file: public sizes, and hidden ones that a secret draws from ranges."""

import hashlib
import hmac
import math
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from grader.base import LabError
from grader.labs.scoring_rules import Positive
from grader.labs.yaml_file import at, either, known_words, say, wanted, wrong
from grader.problems import Dim, Problem
from ptxsim.plan import Record, Size
from ptxsim.text import Message, phrase

Extent = Annotated[int, Meta(ge=1)]
KINDS = ("correctness", "performance", "cpu")
_LEAST_SEED, _MOST_SEED = 16, 4096  # bytes
_TRIES = 1000  # for a size that is not taken


class Drawn(Record):
    """Some hidden sizes: each extent is drawn from its range, both ends included."""

    # Pairs; msgspec 0.22 crashes on a union with a tuple of two.
    ranges: tuple[tuple[Extent, ...] | Extent, ...]
    count: Annotated[int, Meta(ge=1, le=64)] = 1
    multiple_of: Annotated[int, Meta(ge=1, le=65536)] = 1  # besides the lab's
    weight: Positive = 1  # of each timed size within its group
    inputs: str | None = None  # one of the problem's kinds


class PublicGroup(Record):
    weight: Positive


class HiddenGroup(Record):
    weight: Positive
    seed_file: Annotated[str, Meta(min_length=1)]  # from the lab file's folder
    cpu: Annotated[tuple[Drawn, ...], Meta(min_length=1)]
    performance: Annotated[tuple[Drawn, ...], Meta(min_length=1)]
    correctness: tuple[Drawn, ...] = ()


class Groups(Record):
    public: PublicGroup
    hidden: HiddenGroup


def contradictions(groups: Groups, problem: type[Problem], multiple_of: int) -> Iterator[Message]:
    """Mistakes that no single field shows."""
    dims, kinds = problem.dims, problem.kinds
    for kind in KINDS:
        for i, drawn in enumerate(getattr(groups.hidden, kind)):
            field = f"groups.hidden.{kind}[{i}].inputs"
            if drawn.inputs is not None and not kinds:
                yield wrong(field, "groups.no-inputs", problem=repr(problem.name))
            elif drawn.inputs not in (None, *kinds):
                yield at(field, wanted(either(kinds), repr(drawn.inputs)))
            where = f"groups.hidden.{kind}[{i}].ranges"
            if len(drawn.ranges) != len(dims):
                names = ", ".join(dim.name.upper() for dim in dims)
                ranges = say("groups.ranges", number=len(dims), names=names)
                yield at(where, wanted(ranges, str(len(drawn.ranges))))
                continue
            step = math.lcm(drawn.multiple_of, multiple_of)
            for k, (one, dim) in enumerate(zip(drawn.ranges, dims, strict=True)):
                field = f"{where}[{k}]"
                if isinstance(one, tuple) and len(one) != 2:
                    yield at(field, wanted(known_words()["Drawn.ranges[]"], str(list(one))))
                    continue
                low, high = _ends(one)
                if high > dim.most:
                    name = dim.name.upper()
                    yield wrong(field, "groups.most", name=name, most=dim.most, value=high)
                if high < low:
                    yield at(field, wanted("[LEAST, MOST]", f"[{low}, {high}]"))
                elif not _extents(low, high, step):
                    yield wrong(field, "groups.no-multiple", step=step, low=low, high=high)


def read_seed(path: Path) -> bytes | None:
    """The secret; None for who has no such file, or may not read it. Raises LabError."""
    try:
        with path.open("rb") as file:
            seed = file.read(_MOST_SEED + 1).strip()
    except (FileNotFoundError, PermissionError):
        return None
    except OSError as error:
        why = phrase("cannot be read as the seed: {why}", why=error.strerror or str(error))
        raise LabError(at(str(path), why)) from None
    if not _LEAST_SEED <= len(seed) <= _MOST_SEED:
        size = phrase(
            "a seed has {least} to {most} bytes, this file {size}; make one with: grade hidden "
            "--new-seed FILE",
            least=_LEAST_SEED,
            most=_MOST_SEED,
            size=len(seed),
        )
        raise LabError(at(str(path), size))
    return seed


def draw(
    drawn: Sequence[Drawn],
    kind: str,
    dims: Sequence[Dim],
    multiple_of: int,
    seed: bytes,
    taken: Collection[Size],
) -> Iterator[tuple[Size, float]]:
    """Sizes and weights: the same for the same secret and the same ranges, none twice.

    An extent is HMAC-SHA256 of its place in the file, under the secret. Raises LabError.
    """
    used = set(taken)

    def at_place(label: str, one: tuple[int, ...] | int, step: int) -> int:
        among = _extents(*_ends(one), step)
        digest = hmac.new(seed, label.encode(), hashlib.sha256).digest()
        return among[int.from_bytes(digest, "big") % len(among)]

    for i, each in enumerate(drawn):
        step = math.lcm(each.multiple_of, multiple_of)
        ranges = list(zip(dims, each.ranges, strict=True))
        for number in range(each.count):
            tries = (
                Size(
                    dims={
                        dim.name: at_place(f"{kind}/{i}/{number}/{attempt}/{dim.name}", one, step)
                        for dim, one in ranges
                    }
                    | ({"inputs": each.inputs} if each.inputs else {})
                )
                for attempt in range(_TRIES)
            )
            size = next((size for size in tries if size not in used), None)
            if size is None:
                few = phrase("the ranges have too few sizes; widen them, or lower count")
                raise LabError(at(f"groups.hidden.{kind}[{i}]", few))
            used.add(size)
            yield size, each.weight


def _ends(one: tuple[int, ...] | int) -> tuple[int, int]:
    return (one[0], one[1]) if isinstance(one, tuple) else (one, one)


def _extents(low: int, high: int, step: int) -> range:
    return range(-(-low // step) * step, high + 1, step)
