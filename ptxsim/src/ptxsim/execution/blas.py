"""Computes what cuBLAS would, on device memory, and says what is wrong with a call's operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxsim.execution.cublas import COMPUTATIONS, FUNCTIONS, INTS
from ptxsim.execution.memory import DeviceMemory
from ptxsim.execution.messages import BrokenChannel, CallLibrary, DefineBytes
from ptxsim.text import Message, phrase

Values = npt.NDArray[Any]
SCALAR_BYTES = 16  # of one, in a message
_INVALID_VALUE, _EXECUTION_FAILED, _NOT_SUPPORTED = 7, 13, 15  # of cublasStatus_t
_BFLOAT = np.dtype([("bfloat16", "u2")])  # numpy has none
_TYPES: dict[int, np.dtype[Any]] = {  # by the numbers of cudaDataType
    **{0: np.dtype("f4"), 1: np.dtype("f8"), 2: np.dtype("f2"), 14: _BFLOAT},
    **{3: np.dtype("i1"), 10: np.dtype("i4"), 4: np.dtype("c8"), 5: np.dtype("c16")},
}
_OF_LETTER = {"S": _TYPES[0], "D": _TYPES[1], "H": _TYPES[2], "C": _TYPES[4], "Z": _TYPES[5]}
_MOST_REPEATED = 1 << 24  # elements of a vector that is one number
_CHOICES = {"trans": 3, "transa": 3, "transb": 3, "uplo": 2, "side": 2, "diag": 2}
_TOO_SMALL = phrase("{function}: {argument} is {value}, and must be at least {least}")
_NO_CHOICE = phrase("{function}: {argument} is {value}, which has no meaning")
_TYPES_DIFFER = phrase("{function}: cuBLAS has no product of these types")
_NOT_DEVICE = phrase("{function}: {operand} is no device memory")
_FREED = phrase("{function}: {operand} is in {name}, which was freed")
_PAST_END = phrase("{function}: {operand}, {shape}, ends {bytes} bytes past the end of {name}")
_UNWRITTEN = phrase("{function} reads bytes {first} and on of {name}; nobody wrote them")


class Misuse(Exception):  # noqa: N818 - the program's fault, and no error of ours
    """Why a call fails: cublasStatus_t, the kind of finding, and its words."""

    def __init__(self, status: int, kind: str, words: Message) -> None:
        self.status, self.kind, self.words = status, kind, words


class _Operand:
    """A matrix in device memory. used: of a column, the rows that are looked at; all: None."""

    def __init__(self, address: int, cells: Values, used: Callable[[int], range] | None) -> None:
        self.cells, self._address, self._used = cells, address, used

    def rows(self) -> Iterator[DefineBytes]:
        """The places of its numbers: its columns, which are rows to memory."""
        (count, columns), (item, step) = self.cells.shape, self.cells.strides
        if step == count * item and not self._used:
            count, columns = count * columns, 1
        if not self._used:
            yield DefineBytes(address=self._address, size=count * item, rows=columns, pitch=step)
            return
        for column in range(columns):
            if part := self._used(column):
                first = self._address + column * step + part.start * item
                yield DefineBytes(address=first, size=len(part) * item, rows=1, pitch=0)

    def values(self) -> Values:
        """Its numbers, as they are computed with."""
        if self.cells.dtype == _BFLOAT:
            return (self.cells["bfloat16"].astype("u4") << np.uint32(16)).view("f4")
        kind = self.cells.dtype
        return self.cells.astype("f8" if kind.kind == "i" else "f4" if kind.itemsize == 2 else kind)

    def store(self, values: Values, write: Callable[[DefineBytes], object]) -> None:
        if self.cells.dtype == _BFLOAT:  # the nearest, and of two the even one
            bits = np.ascontiguousarray(values, "f4").view("u4")
            rounded = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
            bits = np.where(np.isnan(values), bits | np.uint32(1 << 22), rounded)
            self.cells["bfloat16"] = bits >> np.uint32(16)
        else:
            self.cells[...] = values.astype("i8") if self.cells.dtype.kind == "i" else values
        for rows in self.rows():
            write(rows)


class _Call:
    """One call: ``given`` has its arguments, and what they say together."""

    def __init__(
        self,
        memory: DeviceMemory,
        asked: CallLibrary,
        scalars: bytes,
        write: Callable[[DefineBytes], object],
    ) -> None:
        if asked.function not in FUNCTIONS:
            raise BrokenChannel
        self.function = FUNCTIONS[asked.function]
        names = self.function.arguments
        on_host = [] if asked.on_device else [each for each in names if each in ("alpha", "beta")]
        if (len(asked.arguments), len(scalars)) != (len(names), SCALAR_BYTES * len(on_host)):
            raise BrokenChannel
        self._memory, self._on_device, self._write = memory, asked.on_device, write
        self._scalars = {name: scalars[at * SCALAR_BYTES :] for at, name in enumerate(on_host)}
        given = self.given = dict(zip(names, asked.arguments, strict=True))
        if not all(-(1 << 31) <= given[each] < 1 << 31 for each in INTS & given.keys()):
            raise BrokenChannel
        self.unwritten: list[Message] = []
        for name, count in _CHOICES.items():
            if not 0 <= given.get(name, 0) < count:
                raise self.misuse(_NO_CHOICE.given(argument=name, value=given[name]))
        for name in ("m", "n", "k", "batchCount"):
            self._at_least(name, 0)
        for name in ("incx", "incy"):
            if "lda" in given and given.get(name) == 0:
                raise self.misuse(_NO_CHOICE.given(argument=name, value=0))
        m, n = given.get("m", 1), given["n"]
        given["order"] = n if given.get("side") == 1 else m
        given["rows"], given["columns"] = (n, m) if given.get("trans") else (m, n)
        self._type = self._scalar = _OF_LETTER.get(self.function.letter, _TYPES[0])
        if "computeType" in given:
            a, b, c = (given[f"{each}type"] for each in "ABC")
            scalar, pairs = COMPUTATIONS.get(str(given["computeType"]), (0, []))
            if a != b or [a, c] not in pairs:
                raise self.misuse(_TYPES_DIFFER, _NOT_SUPPORTED)
            self._scalar = _TYPES[c if _TYPES[c].kind == "c" else scalar]

    def misuse(self, words: Message, status: int = _INVALID_VALUE) -> Misuse:
        kind = "out-of-bounds" if status == _EXECUTION_FAILED else "failed-call"
        return Misuse(status, kind, words.given(function=self.function.spoken))

    def _at_least(self, name: str, least: int) -> None:
        if (value := self.given.get(name, least)) < least:
            raise self.misuse(_TOO_SMALL.given(argument=name, value=value, least=least))

    def scalar(self, name: str) -> Any:
        """A factor; 1 where the function has none."""
        if name not in self.given:
            return 1
        if name in self._scalars:
            return np.frombuffer(self._scalars[name], self._scalar, 1)[0].item()
        return self._cells(name, self.given[name], (1, 1), 1, self._scalar).values()[0, 0].item()

    def operand(self, asked: Sequence[str], index: int = 0, *, reads: bool = True) -> _Operand:
        """Operand ``index`` of a batch."""
        name, rows, *more = asked
        kind = _TYPES[self.given[f"{name}type"]] if f"{name}type" in self.given else self._type
        if f"inc{name}" in self.given:
            step = abs(self.given[f"inc{name}"])
            return self._cells(
                name, self.given[name], (1, self.given[rows]), step, kind, reads=reads
            )
        shape = (self.given[rows], self.given[more[0]])
        if more[-1] in _CHOICES and self.given[more[-1]]:
            shape = shape[::-1]
        self._at_least(f"ld{name.lower()}", max(shape[0], 1))
        if f"{name}array" in self.given:
            at = self.given[f"{name}array"] + 8 * index
            address = int(self._cells(f"{name}array", at, (1, 1), 1, np.dtype("i8")).cells[0, 0])
        else:
            address = self.given[name] + self.given.get(f"stride{name}", 0) * index * kind.itemsize
        used = self._half(shape[0]) if more[-1] in ("symmetric", "triangle") else None
        ld = self.given[f"ld{name.lower()}"]
        return self._cells(name, address, shape, ld, kind, used, reads=reads)

    def _half(self, size: int) -> Callable[[int], range]:
        unit = self.given.get("diag", 0)
        if self.given["uplo"] == 0:
            return lambda column: range(min(column + unit, size), size)
        return lambda column: range(column + 1 - unit)

    def values(self, asked: Sequence[str], index: int = 0) -> Values:
        """The numbers of an operand, as the formula has them; a vector's in a row."""
        name, how, numbers = asked[0], asked[-1], self.operand(asked, index).values()
        if f"inc{name}" in self.given:
            return numbers[0, :: -1 if self.given[f"inc{name}"] < 0 else 1]
        if how in ("symmetric", "triangle"):
            half = np.tril if self.given["uplo"] == 0 else np.triu
            numbers = half(numbers)
            if self.given.get("diag"):
                np.fill_diagonal(numbers, 1)
            if how == "symmetric":
                return numbers + numbers.T - np.diag(np.diag(numbers))
            how = "trans"
        turn = self.given[how] if how in _CHOICES else 0
        return numbers if turn == 0 else numbers.T if turn == 1 else numbers.conj().T

    def store(self, asked: Sequence[str], values: Values, index: int = 0) -> None:
        if self.given.get(f"inc{asked[0]}", 0) < 0:
            values = values[::-1]
        target = self.operand(asked, index, reads=False)
        target.store(np.broadcast_to(values, target.cells.shape), self._write)

    def give(self, value: float) -> bytes:
        """The result for the host, unless it is stored on the device."""
        kind = np.dtype("i4") if self.function.name.startswith("I") else self._type
        result: Values = np.full((1, 1), value, kind)
        if not self._on_device:
            return result.tobytes()
        place = self._cells("result", self.given["result"], (1, 1), 1, kind, reads=False)
        place.store(result, self._write)
        return b""

    def _cells(
        self,
        name: str,
        address: int,
        shape: tuple[int, int],
        ld: int,
        kind: np.dtype[Any],
        used: Callable[[int], range] | None = None,
        *,
        reads: bool = True,
    ) -> _Operand:
        size = ((shape[1] - 1) * ld + shape[0]) * kind.itemsize
        if ld == 0 and shape[1] > _MOST_REPEATED:
            raise self.misuse(_NO_CHOICE.given(argument=f"inc{name}", value=0))
        found = self._memory.allocation(address)
        if found is None or found.freed:
            words = _FREED.given(name=found.name()) if found else _NOT_DEVICE
            raise self.misuse(words.given(operand=name), _EXECUTION_FAILED)
        if size > found.left:
            step = "inc" if f"inc{name}" in self.given else "ld"
            text = f"{shape[0]} × {shape[1]} at {step} {ld}"
            words = _PAST_END.given(operand=name, shape=text, bytes=size - found.left)
            raise self.misuse(words.given(name=found.name()), _EXECUTION_FAILED)
        strides = (kind.itemsize, ld * kind.itemsize)
        cells: Values = np.ndarray(shape, kind, self._memory.cells(address, size).data, 0, strides)
        operand = _Operand(address, cells, used)
        whole = DefineBytes(address=address, size=size, rows=1, pitch=0)
        gaps = reads and self._memory.undefined(whole)  # perhaps between what is read
        seen = (self._memory.undefined(rows) for rows in operand.rows()) if gaps else ()
        if found_at := next(filter(None, seen), None):
            words = _UNWRITTEN.given(name=found_at[0], first=found_at[1])
            self.unwritten.append(words.given(function=self.function.spoken))
        return operand


def call(
    memory: DeviceMemory,
    asked: CallLibrary,
    scalars: bytes,
    write: Callable[[DefineBytes], object],
) -> tuple[int, bytes, list[tuple[str, Message]]]:
    """Do what a call asks for; return its status, its result for the host, and what is wrong, each
    with its kind. ``write`` is told what it wrote. Raises BrokenChannel."""
    try:
        of = _Call(memory, asked, scalars, write)
        with np.errstate(all="ignore"):
            result = _carry_out(of)
    except Misuse as why:
        return why.status, b"", [(why.kind, why.words)]
    return 0, result, [("uninitialized-read", each) for each in of.unwritten]


def _carry_out(of: _Call) -> bytes:
    operation, operands = of.function.operation, of.function.operands
    if not all(of.given[each] for each in ("m", "n") if each in of.given):
        return of.give(0) if "result" in of.given else b""
    if "result" in of.given:
        return of.give(_RESULTS[operation](*map(of.values, operands)))
    if operation == "swap":
        x, y = map(of.values, operands)
        of.store(operands[0], y)
        of.store(operands[1], x)
        return b""
    *inputs, target = operands
    added = inputs.pop() if operation == "geam" else target
    adds = "beta" in of.given or operation in ("axpy", "ger")
    for index in range(of.given.get("batchCount", 1)):
        alpha, beta = of.scalar("alpha"), of.scalar("beta")
        old = of.values(added, index) if adds and beta != 0 else 0
        new = 0
        if alpha != 0 and of.given.get("k", 1):
            numbers = [of.values(each, index) for each in inputs]
            new = alpha * _FORMULAS[operation](of.given.get("side", 0), *numbers)
        of.store(target, np.asarray(new + beta * old), index)
    return b""


def _multiplied(right: int, a: Values, b: Values) -> Values:
    return b @ a if right else a @ b


def _solved(right: int, triangle: Values, values: Values) -> Values:
    try:
        if right:
            return np.linalg.solve(triangle.T, values.T).T
        return np.linalg.solve(triangle, values)
    except np.linalg.LinAlgError:  # a zero on the diagonal, by which cuBLAS divides
        return np.full_like(values, np.nan)


_RESULTS: dict[str, Callable[..., Any]] = {
    "dot": np.dot,
    "nrm2": lambda x: np.sqrt(np.sum(x.astype("f8") ** 2)),
    "asum": lambda x: np.abs(x).sum(),
    "amax": lambda x: np.argmax(np.abs(x)) + 1,
    "amin": lambda x: np.argmin(np.abs(x)) + 1,
}
# Of the side and the inputs.
_FORMULAS: dict[str, Callable[..., Values]] = {
    **dict.fromkeys(("gemm", "gemv", "symv", "symm", "trmv", "trmm"), _multiplied),
    **dict.fromkeys(("trsv", "trsm"), _solved),
    **dict.fromkeys(("geam", "axpy", "scal", "copy"), lambda _, x: x),
    "ger": lambda _, x, y: np.outer(x, y),
    "dgmm": lambda right, a, x: a * (x if right else x[:, None]),
}
