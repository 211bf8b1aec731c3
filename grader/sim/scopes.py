"""Names declared inside ``{ … }`` of PTX: each gets one that is unique in the module.

Inline assembly brings such braces, and the same braces again wherever it is inlined; nvcc writes
others round its calls.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from grader.sim.ptx import Function, Instruction, Label

_NAME = re.compile(r"[%$\w@]+")


@dataclass
class _Scope:
    number: int
    body_at: int  # where its instructions begin in the function
    targets_at: int  # and its branch tables
    names: dict[str, str] = field(default_factory=dict)
    families: dict[str, str] = field(default_factory=dict)  # "t" of "t<9>"
    labels: dict[str, str] = field(default_factory=dict)


class Scopes:
    """The open scopes of one function at a time, innermost last."""

    def __init__(self) -> None:
        self._open: list[_Scope] = []
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._open)

    def open(self, function: Function | None) -> None:
        self._count += 1
        body, targets = (len(function.body), len(function.targets)) if function else (0, 0)
        self._open.append(_Scope(self._count, body, targets))

    def close(self, function: Function | None) -> None:
        """Only now are all labels of the scope known: a branch may stand before its label."""
        scope = self._open.pop()
        if function is None or not scope.labels:
            return
        for at, item in enumerate(function.body[scope.body_at :], scope.body_at):
            if isinstance(item, Label):
                function.body[at] = Label(scope.labels.get(item.name, item.name))
            elif isinstance(item, Instruction) and item.opcode.startswith(("bra", "brx")):
                item.operands = [scope.labels.get(name, name) for name in item.operands]
        for table in list(function.targets)[scope.targets_at :]:
            names = [scope.labels.get(name, name) for name in function.targets.pop(table)]
            function.targets[scope.labels.get(table, table)] = names

    def declare(self, name: str) -> str:
        """A register or variable: from here to the end of the innermost scope."""
        if not self._open:
            return name
        scope = self._open[-1]
        return scope.names.setdefault(name, _unique(name, scope))

    def declare_family(self, stem: str) -> str:
        """The registers stem0, stem1, …"""
        if not self._open:
            return stem
        scope = self._open[-1]
        return scope.families.setdefault(stem, _unique(stem, scope) + "_")

    def declare_label(self, name: str) -> None:
        """A label: in all of the innermost scope, before it too."""
        if self._open:
            scope = self._open[-1]
            scope.labels[name] = _unique(name, scope)

    def name(self, name: str) -> str:
        """What the innermost declaration of ``name`` is called."""
        stem = name.rstrip("0123456789")
        for scope in reversed(self._open):
            if name in scope.names:
                return scope.names[name]
            if stem != name and stem in scope.families:
                return scope.families[stem] + name[len(stem) :]
        return name

    def names_in(self, text: str) -> str:
        """``text`` with every declared name replaced."""
        if not any(scope.names or scope.families for scope in self._open):
            return text
        return _NAME.sub(lambda match: self.name(match[0]), text)


def _unique(name: str, scope: _Scope) -> str:
    return f"{name}@{scope.number}"
