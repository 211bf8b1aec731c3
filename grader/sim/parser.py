"""PTX text → ``Module``.

Only the text is taken apart here; what an instruction means is lower.py's business. What is
declared inside ``{ … }`` (inline assembly, call sequences) is renamed by scopes.py.
"""

from __future__ import annotations

import re
from pathlib import Path

from grader.sim.declarations import local_variable, module_variable, parameters
from grader.sim.ptx import (
    Function,
    Instruction,
    Label,
    Location,
    Module,
    PtxError,
    Variable,
)
from grader.sim.scopes import Scopes

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PIECE = re.compile(r'"[^"]*"|[;{}]|[^;{}"]+')
_LABEL = re.compile(r"\s*([\w$%]+)\s*:(?!:)")
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*?inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?")
_FILE = re.compile(r'\.file\s+(\d+)\s+"([^"]*)"')
_FUNCTION = re.compile(
    r"(?:\.(?:visible|weak|extern|common)\s+)*\.(?P<kind>entry|func)\s*"
    r"(?:\((?P<returns>[^)]*)\)\s*)?(?P<name>[\w$]+)\s*(?:\((?P<params>[^)]*)\))?",
    re.DOTALL,
)
_LINE_DIRECTIVES = (".version", ".target", ".address_size")

Position = tuple[int, int, int]


class _Parser:
    def __init__(self, source_root: Path) -> None:
        self.root = source_root
        self.variables: list[Variable] = []
        self.functions: dict[str, Function] = {}
        self.externs: set[str] = set()
        self.files: dict[int, str] = {}
        self.inlined: dict[Position, Position | None] = {}
        self.places: dict[tuple[Position, ...], int] = {}
        self.place = -1
        self.row = 0
        self.function: Function | None = None
        self.scopes = Scopes()
        self.buffer = ""
        self.nesting = 0  # braces inside a statement: vectors and initialisers

    # --- text → statements

    def parse(self, text: str) -> Module:
        lines = enumerate(_COMMENT.sub(_only_newlines, text).split("\n"), 1)
        for at, line in lines:
            if not self.buffer.strip():
                self.row = at
            stripped = line.strip()
            if not stripped:
                continue
            if not self.buffer.strip() and stripped[0] == ".":
                if stripped.startswith((".loc ", ".loc\t")):
                    self._loc(stripped)
                    continue
                if stripped.startswith(".file"):
                    match = _FILE.match(stripped)
                    if match:
                        self.files[int(match[1])] = match[2]
                    continue
                if stripped.startswith(".section"):
                    while "}" not in line:
                        _, line = next(lines, (0, "}"))
                    continue
                if stripped.startswith(_LINE_DIRECTIVES):
                    continue
            self._pieces(line + "\n")
        locations = [self._locate(chain) for chain in self.places]
        return Module(self.variables, self.functions, self.externs, locations)

    def _pieces(self, line: str) -> None:
        for piece in _PIECE.findall(line):
            if piece == ";":
                statement, self.buffer = " ".join(self.buffer.split()), ""
                if statement:
                    self._statement(statement)
            elif piece == "{":
                if self.nesting or (self.buffer.strip() and not self._header()):
                    self.nesting += 1
                    self.buffer += piece
                elif self.buffer.strip():
                    self._open_function()
                else:
                    self.scopes.open(self.function)
            elif piece == "}":
                if self.nesting:
                    self.nesting -= 1
                    self.buffer += piece
                elif self.scopes:
                    self.scopes.close(self.function)
                else:
                    self.function = None
            else:
                while not self.buffer.strip() and (label := _LABEL.match(piece)):
                    self._label(label[1])
                    piece = piece[label.end() :]
                self.buffer += piece

    def _header(self) -> bool:
        return self.function is None and _FUNCTION.match(self.buffer.strip()) is not None

    def _loc(self, text: str) -> None:
        match = _LOC.match(text)
        if not match:
            return
        here = (int(match[1]), int(match[2]), int(match[3]))
        parent = (int(match[4]), int(match[5]), int(match[6])) if match[4] else None
        if not here[1]:
            return  # line 0: compiler's own code; it belongs to what stands before it
        self.inlined[here] = parent
        # nvcc writes the callers first, so the chain as known now is this instruction's.
        chain = [here]
        while parent is not None and len(chain) < 32:
            chain.append(parent)
            parent = self.inlined.get(parent)
        self.place = self.places.setdefault(tuple(chain), len(self.places))

    def _locate(self, chain: tuple[Position, ...]) -> Location | None:
        """The innermost place of a chain of inlined calls that belongs to the submission."""
        for file, line, _ in chain:
            name = self.files.get(file)
            if name is None:
                continue
            path = Path(name)
            if not path.is_absolute():
                return Location(name, line, True)
            if path.is_relative_to(self.root):
                return Location(path.relative_to(self.root).as_posix(), line, True)
        file, line, _ = chain[-1]
        return Location(self.files.get(file, "?"), line, False)

    # --- statements

    def _open_function(self) -> None:
        match = _FUNCTION.match(self.buffer.strip())
        assert match is not None
        self.buffer = ""
        function = Function(
            name=match["name"],
            entry=match["kind"] == "entry",
            params=parameters(match["params"]),
            returns=parameters(match["returns"]),
        )
        self.functions[function.name] = function
        self.externs.discard(function.name)
        self.function = function

    def _label(self, name: str) -> None:
        if self.function is None:
            raise PtxError(f"label {name} outside a function")
        if self.buffer.strip():
            return
        self.scopes.declare_label(name)
        self.function.body.append(Label(name))

    def _statement(self, text: str) -> None:
        if self.function is None:
            self._module_statement(text)
        elif text[0] == ".":
            self._declaration(text)
        else:
            self._instruction(text)

    def _module_statement(self, text: str) -> None:
        words = text.split()
        if ".func" in words[:3]:
            match = _FUNCTION.match(text)
            if match and match["name"] not in self.functions:
                self.externs.add(match["name"])
            return
        space = next((w[1:] for w in words[:4] if w in (".global", ".const", ".shared")), None)
        if space is None:
            return
        self.variables.append(module_variable(text, space))

    def _declaration(self, text: str) -> None:
        function = self.function
        assert function is not None
        directive, _, rest = text.partition(" ")
        if directive == ".reg":
            kind, _, names = rest.strip().partition(" ")
            for name in names.split(","):
                name = name.strip()
                if name.endswith(">"):
                    family = self.scopes.declare_family(name[: name.index("<")])
                    function.families[family] = kind[1:]
                else:
                    function.registers[self.scopes.declare(name)] = kind[1:]
        elif directive in (".local", ".shared", ".param"):
            variable = local_variable(rest.strip(), directive[1:])
            name = self.scopes.declare(variable.name)
            function.variables.append(Variable(name, variable.space, variable.size, variable.align))
        elif directive == ".branchtargets":
            label = function.body.pop()
            assert isinstance(label, Label)
            function.targets[label.name] = [name.strip() for name in rest.split(",")]
        elif directive == ".callprototype":
            function.body.pop()

    def _instruction(self, text: str) -> None:
        assert self.function is not None
        guard, negate = None, False
        if text[0] == "@":
            head, _, text = text.partition(" ")
            negate = head[1] == "!"
            guard = self.scopes.name(head[2 if negate else 1 :])
        opcode, _, rest = text.partition(" ")
        operands = _split(self.scopes.names_in(rest))
        self.function.body.append(
            Instruction(opcode, operands, guard, negate, self.place, self.row)
        )


def _only_newlines(comment: re.Match[str]) -> str:
    return "\n" * comment[0].count("\n")


def _split(text: str) -> list[str]:
    """Operands at top-level commas: "{a, b}, [c + 4]" → ["{a, b}", "[c + 4]"]."""
    if "{" not in text and "(" not in text:
        return [part.strip() for part in text.split(",")] if text else []
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        if char in "{([":
            depth += 1
        elif char in "})]":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    parts.append(text[start:].strip())
    return parts


def parse(text: str, source_root: Path) -> Module:
    """Parse PTX as nvcc writes it.

    ``source_root`` is the folder whose files belong to the submission. Raises PtxError.
    """
    parser = _Parser(source_root)
    try:
        return parser.parse(text)
    except (KeyError, IndexError, ValueError) as error:  # no compiler writes this
        raise PtxError(f"line {parser.row} is not PTX as nvcc writes it ({error})") from None
