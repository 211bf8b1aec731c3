"""Names declared inside a function of PTX: each gets one that is unique there.

Inline assembly has braces of its own, which are repeated wherever it is inlined; nvcc writes others
around its calls. As in ptxas, a name means the innermost declaration before it; a label may come
after its use.
"""

from dataclasses import dataclass, field

from ptxsim.frontend.records import PtxError
from ptxsim.text import phrase

_MAX_DEPTH = 64  # nested braces


class BadName(PtxError):  # noqa: N818 - the reader makes a PtxError with a line of it
    """A name that is declared twice, or never."""


@dataclass(slots=True)
class _Scope:
    suffix: str  # makes its names unique; "" for the function's own scope
    names: dict[str, str] = field(default_factory=dict)
    families: dict[str, tuple[str, int]] = field(default_factory=dict)  # "t" of "t<9>"
    numbered: dict[str, list[int]] = field(default_factory=dict)  # "t" → [7] of a register t7
    labels: dict[str, str] = field(default_factory=dict)
    uses: list[tuple[list[str], int, int]] = field(default_factory=list)  # of labels


class Scopes:
    """The open scopes of one function at a time, innermost last."""

    def __init__(self) -> None:
        self._open: list[_Scope] = []
        self._count = 0
        self._found: dict[str, str | None] = {}  # answers of ``name`` since the last change

    @property
    def depth(self) -> int:
        return len(self._open)

    def open(self) -> None:
        if len(self._open) > _MAX_DEPTH:
            raise BadName(phrase("braces are nested more than {most} deep", most=_MAX_DEPTH))
        self._count += 1
        self._open.append(_Scope(f"@{self._count}" if self._open else ""))
        self._found.clear()

    def close(self) -> None:
        """Resolve labels: only now are all labels of the scope known."""
        scope = self._open.pop()
        if not scope.labels and self._open and not self._open[-1].uses:
            self._open[-1].uses, scope.uses = scope.uses, []
        for operands, at, row in scope.uses:
            label = scope.labels.get(operands[at])
            if label is not None:
                operands[at] = label
            elif self._open:
                self._open[-1].uses.append((operands, at, row))
            else:
                raise BadName(
                    phrase("there is no label {label} for line {row}", label=operands[at], row=row)
                )
        self._found.clear()

    def declare(self, name: str, mark: str = "") -> str:
        """A register or variable: from here to the end of the innermost scope."""
        scope = self._claimed(name)
        stem, index = _numbered(name)
        if index is not None:
            scope.numbered.setdefault(stem, []).append(index)
        unique = scope.names[name] = name + self._suffix(name, mark)
        self._found.clear()
        return unique

    def declare_formal(self, name: str) -> None:
        """A parameter of the function itself: it keeps its name."""
        self._claimed(name).names[name] = name

    def declare_family(self, stem: str, count: int) -> str:
        """The registers stem0, stem1, … of which there are ``count``."""
        scope = self._open[-1]
        if stem in scope.families:
            raise BadName(phrase("{stem}<…> is declared twice in one scope", stem=stem))
        for index in scope.numbered.get(stem, ()):
            if index < count:
                raise BadName(
                    phrase("{stem}{index} is declared twice in one scope", stem=stem, index=index)
                )
        suffix = self._suffix(stem, "")
        unique = f"{stem}{suffix}_" if suffix else stem
        scope.families[stem] = (unique, count)
        self._found.clear()
        return unique

    def _suffix(self, name: str, mark: str) -> str:
        """A suffix that makes a name unique in the module. nvcc's registers in the outermost scope
        need none: only their names begin with "%"."""
        scope = self._open[-1]
        if not scope.suffix and name[0] == "%":
            return ""
        self._count += 1
        return f"@{mark}{self._count}"

    def declare_label(self, name: str) -> str:
        scope = self._claimed(name)
        unique = scope.labels[name] = name + scope.suffix
        return unique

    def is_label(self, name: str) -> bool:
        """Whether a label that stands before this place is called ``name``."""
        return any(name in scope.labels for scope in self._open)

    def use_label(self, operands: list[str], at: int, row: int) -> None:
        """``operands[at]`` names a label; it is replaced by the label's unique name."""
        self._open[-1].uses.append((operands, at, row))

    def out_of_family(self, name: str) -> bool:
        """Whether an undeclared name is written like a register of some family."""
        stem = name.rstrip("0123456789")
        return any(stem in scope.families for scope in self._open)

    def name(self, name: str) -> str | None:
        """Return the unique name of the innermost declaration of ``name``; None when there is
        none."""
        try:
            return self._found[name]
        except KeyError:
            found = self._found[name] = self._find(name)
            return found

    def _find(self, name: str) -> str | None:
        stem, index = _numbered(name)
        for scope in reversed(self._open):
            if name in scope.names:
                return scope.names[name]
            if index is not None and stem in scope.families:
                unique, count = scope.families[stem]
                if index < count:
                    return f"{unique}{index}"
        return None

    def _claimed(self, name: str) -> _Scope:
        """The innermost scope. Raises if ``name`` exists there already."""
        scope = self._open[-1]
        stem, index = _numbered(name)
        taken = index is not None and stem in scope.families and index < scope.families[stem][1]
        if taken or name in scope.names or name in scope.labels:
            raise BadName(phrase("{name} is declared twice in one scope", name=name))
        return scope


def _numbered(name: str) -> tuple[str, int | None]:
    """ "%r12" → ("%r", 12). ptxas takes %r012 for %r12 too, and wraps at 2^32: nobody writes it."""
    stem = name.rstrip("0123456789")
    digits = name[len(stem) :]
    if not digits or len(digits) > 9 or (digits[0] == "0" and len(digits) > 1):
        return stem, None
    return stem, int(digits)
