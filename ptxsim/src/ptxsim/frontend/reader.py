"""PTX text → ``PtxModule``.

One pass over the tokens. The reader rejects text that ptxas would read differently, and text that
nvcc never writes and whose meaning is unclear. It decides which tokens belong to an instruction;
the lowering decides what the instruction means.
"""

import math
import re
from dataclasses import dataclass, field
from pathlib import Path

from ptxsim.frontend.body import Body, pragma
from ptxsim.frontend.debug_info import DebugSection
from ptxsim.frontend.declarations import parameters, variable_name, variables
from ptxsim.frontend.places import Places
from ptxsim.frontend.records import SIZES, Function, PtxError, PtxModule, Variable
from ptxsim.frontend.scopes import BadName, Scopes
from ptxsim.frontend.tokens import DOT, END, NUMBER, WORD, Tokens, Wanted
from ptxsim.text import phrase, verbatim

_LINKAGE = (".visible", ".weak", ".extern", ".common")
_SPACES = (".global", ".const", ".shared")
_DATA = (".b8", ".b16", ".b32", ".b64")
_COUNTS = {  # directives of a kernel with numbers behind them, and how many at most
    ".maxntid": 3,
    ".reqntid": 3,
    ".minnctapersm": 1,
    ".maxnctapersm": 1,
    ".maxnreg": 1,
    ".reqnctapercluster": 3,
    ".maxclusterrank": 1,
}
_FLAGS = (".noreturn", ".explicitcluster", ".blocksareclusters")


@dataclass(slots=True)
class _Reader:
    tokens: Tokens
    places: Places
    variables: dict[str, Variable] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    externs: set[str] = field(default_factory=set)
    scopes: Scopes = field(default_factory=Scopes)
    header: set[str] = field(default_factory=set)  # .version and similar directives that were read
    target: int = 0
    sections: dict[str, DebugSection] = field(default_factory=dict)
    private: set[str] = field(default_factory=set)

    def read(self) -> PtxModule:
        while self.tokens.kind != END:
            self._statement()
        variables, locations = list(self.variables.values()), self.places.locations()
        return PtxModule(
            variables,
            self.functions,
            self.externs,
            locations,
            self.target,
            sections=self.sections,
            private=self.private,
        )

    def _statement(self) -> None:
        tokens = self.tokens
        directive = tokens.value if tokens.kind == DOT else ""
        if directive in (".version", ".target", ".address_size"):
            self._header(directive)
        elif directive == ".file":
            self.places.file(tokens)
        elif directive == ".section":
            self._section()
        elif directive == ".pragma":
            pragma(tokens)
        else:
            self._definition()

    def _header(self, directive: str) -> None:
        tokens = self.tokens
        if directive in self.header:
            raise tokens.saying("{directive} stands here a second time", directive=directive)
        self.header.add(directive)
        tokens.advance()
        if directive == ".target":
            architecture = tokens.word(phrase("an architecture"))
            digits = re.search(r"_([0-9]{2,3})[a-z]*$", architecture)
            self.target = int(digits[1]) if digits else 0
            while tokens.accept(","):
                tokens.word(phrase("an option of .target"))
        elif directive == ".version":
            tokens.take(NUMBER, phrase("a version"))
        elif tokens.count(verbatim("64")) != 64:
            raise tokens.saying("only addresses of 64 bits are read")

    def _section(self) -> None:
        """``.section .debug_str { label: .b8 1, 2 .b32 label + 4, .debug_loc }``: for debuggers."""
        tokens = self.tokens
        tokens.advance()
        section = DebugSection()
        self.sections[tokens.take(DOT, phrase("the name of a section"))] = section
        tokens.expect("{")
        while tokens.value != "}":
            if tokens.kind == WORD:
                tokens.advance()
                tokens.expect(":")
                continue
            if tokens.value not in _DATA:
                raise tokens.unexpected(Wanted.DATA)
            width = SIZES[tokens.advance()[1:]]
            while True:
                value = 0
                if tokens.kind in (WORD, DOT):  # a label, another section
                    section.symbols[len(section.data)] = tokens.advance()
                else:
                    value = tokens.count(Wanted.DATA)
                section.data += (value & (1 << 8 * width) - 1).to_bytes(width, "little")
                while tokens.value in ("+", "-"):
                    tokens.advance()
                    if tokens.kind in (WORD, DOT):
                        tokens.advance()
                    else:
                        tokens.count(Wanted.DATA)
                if not tokens.accept(","):
                    break
        tokens.advance()

    def _definition(self) -> None:
        tokens = self.tokens
        linkage = tokens.advance() if tokens.value in _LINKAGE else ""
        extern = linkage == ".extern"
        if tokens.value in (".entry", ".func"):
            self._function(linkage)
        elif tokens.value in _SPACES:
            space = tokens.advance()[1:]
            for variable in variables(tokens, space, extern=extern):
                self._variable(variable)
                if not linkage:
                    self.private.add(variable.name)
        else:
            raise tokens.unexpected(phrase("a declaration or a function"))

    def _variable(self, variable: Variable) -> None:
        name = variable.name
        before = self.variables.get(name)
        if name in self.functions or name in self.externs:
            raise self.tokens.saying("{name} is declared twice", name=name)
        if before is not None:
            if before.space != variable.space or not (before.extern or variable.extern):
                raise self.tokens.saying("{name} is declared twice", name=name)
            if variable.extern:
                return
        if not variable.size and not variable.extern:
            raise self.tokens.saying("{name} has no size", name=name)
        self.variables[name] = variable

    # --- functions

    def _function(self, linkage: str) -> None:
        tokens = self.tokens
        entry = tokens.advance() == ".entry"
        returns = parameters(tokens) if tokens.value == "(" and not entry else []
        name = variable_name(tokens)
        if name in self.variables or name in self.functions:
            raise tokens.saying("{name} is declared twice", name=name)
        params = parameters(tokens) if tokens.value == "(" else []
        function = Function(name=name, entry=entry, params=params, returns=returns)
        self._attributes(function)
        if tokens.accept(";"):
            self.externs.add(name)
            return
        if linkage == ".extern":
            raise tokens.saying("{name} is .extern and has a body", name=name)
        if not linkage:
            self.private.add(name)
        self.functions[name] = function
        self.externs.discard(name)
        body = Body(tokens, self.places, self.scopes, function, self._knows)
        try:
            body.read()
        except BadName as error:
            raise tokens.error(error.message) from None

    def _attributes(self, function: Function) -> None:
        tokens = self.tokens
        seen = set()
        while tokens.kind == DOT:
            directive = tokens.value
            if directive in seen and directive != ".pragma":
                raise tokens.saying("{directive} stands here a second time", directive=directive)
            seen.add(directive)
            if directive == ".pragma":
                pragma(tokens)
                continue
            if directive not in _COUNTS and directive not in _FLAGS:
                raise tokens.unexpected(phrase("an attribute of a function"))
            tokens.advance()
            if directive in _FLAGS:
                continue
            values = [tokens.count(Wanted.NUMBER)]
            while len(values) < _COUNTS[directive] and tokens.accept(","):
                values.append(tokens.count(Wanted.NUMBER))
            if directive in (".maxntid", ".reqntid"):
                function.max_threads = math.prod(values)
            if directive == ".reqnctapercluster":
                x, y, z = (*values, 1, 1)[:3]
                function.cluster = (x, y, z)

    def _knows(self, name: str) -> bool:
        """Whether ``name`` is a variable or function of the module."""
        return name in self.variables or name in self.functions or name in self.externs


def parse(text: str, source_root: Path) -> PtxModule:
    """Read a module.

    ``source_root`` is the folder of its sources, which places are relative to. Raises PtxError.
    """
    places = Places(source_root)
    try:
        return _Reader(Tokens(text), places).read()
    except PtxError as error:
        error.location = places.where(text)
        raise
