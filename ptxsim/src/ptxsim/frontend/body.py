"""The body of a function of PTX: declarations, labels and instructions."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from ptxsim.frontend.declarations import constant, expression, variables
from ptxsim.frontend.places import Places
from ptxsim.frontend.records import SIZES, Function, Instruction, Label
from ptxsim.frontend.scopes import BadName, Scopes
from ptxsim.frontend.tokens import DOT, NUMBER, STRING, WORD, Tokens, Wanted
from ptxsim.text import phrase

MAX_INSTRUCTIONS = 1 << 20  # in one function
_MAX_OPERANDS = 1024  # registers and constants of one instruction
_MAX_MODIFIERS = 32  # of one instruction
_MAX_DEPTH = 3  # of brackets in an operand
_TABLES = (".branchtargets", ".calltargets", ".callprototype")
_AXES = (".x", ".y", ".z", ".w")
_PIECES = re.compile(r"\.(b[0-7]{1,4}|h[0-3]{1,2})")  # of a register, for video instructions
_CONSTANTS = {"WARP_SZ": "32"}


_ACCESSES = {"ld", "ldu", "st", "atom", "red", "ldmatrix", "stmatrix"}
_SYNC_AT = {"vote": 0, "shfl": 0, "redux": 0, "match": 1}  # which modifier it is
_ANY_ORDER = {*_ACCESSES, *_SYNC_AT, "bar", "barrier", "mul", "mad", "setp", "shf", "bfind"}


def _usual_order(opcode: str) -> str:
    """The opcode as the PTX ISA spells it. ptxas takes these modifiers in any order, and CUB writes
    ``vote.ballot.sync.b32``."""
    base, *mods = opcode.split(".")
    if base in _ANY_ORDER:
        mods.sort(key=SIZES.__contains__)  # the type is last
    if base in _SYNC_AT and "sync" in mods:
        mods.remove("sync")
        mods.insert(_SYNC_AT[base], "sync")
    return ".".join((base, *mods))


@dataclass(slots=True)
class Body:
    tokens: Tokens
    places: Places
    scopes: Scopes
    function: Function
    knows: Callable[[str], bool]  # the names of the module
    parts: int = 0  # of the operands of the current instruction

    def read(self) -> None:
        """From the opening brace to the closing one."""
        tokens, scopes = self.tokens, self.scopes
        tokens.expect("{")
        scopes.open()
        for variable in (*self.function.returns, *self.function.params):
            scopes.declare_formal(variable.name)
        while scopes.depth:
            if tokens.kind == WORD:
                self._word()
            elif tokens.kind == DOT:
                self._directive()
            elif tokens.value == "@":
                self._guarded()
            elif tokens.accept("{"):
                scopes.open()
            elif tokens.value == "}":
                scopes.close()
                tokens.advance()
            else:
                raise tokens.unexpected(Wanted.INSTRUCTION)

    def _word(self) -> None:
        """An instruction or a label."""
        tokens = self.tokens
        row = tokens.row
        word = tokens.advance()
        if not tokens.accept(":"):
            self._instruction(word, row, None, negate=False)
            return
        label = self.scopes.declare_label(word)
        if tokens.value in _TABLES:
            self._table(label)
        else:
            self.function.body.append(Label(label))

    def _guarded(self) -> None:
        tokens = self.tokens
        row = tokens.row
        tokens.advance()
        negate = tokens.accept("!")
        guard = self._predicate()
        self._instruction(tokens.word(Wanted.INSTRUCTION), row, guard, negate=negate)

    # --- directives

    def _directive(self) -> None:
        tokens = self.tokens
        directive = tokens.value
        if directive == ".loc":
            self.places.loc(tokens)
        elif directive == ".reg":
            tokens.advance()
            self._registers()
        elif directive in (".local", ".shared", ".param"):
            tokens.advance()
            self._variables(directive[1:])
        elif directive == ".pragma":
            pragma(tokens)
        else:
            raise tokens.unexpected(phrase("a directive of a function"))

    def _registers(self) -> None:
        """``.reg .b32 %r<9>, x;``"""
        tokens, scopes, function = self.tokens, self.scopes, self.function
        kind = tokens.take(DOT, Wanted.TYPE)[1:]
        if kind not in SIZES:
            raise tokens.saying("registers of type .{type} are not read", type=kind)
        while True:
            name = tokens.word()
            if name == "_" or name in _CONSTANTS:
                raise tokens.saying("{name} is no name for a register", name=name)
            if tokens.accept("<"):
                count = tokens.count(phrase("a number of registers"))
                tokens.expect(">")
                function.families[scopes.declare_family(name, count)] = kind
            else:
                function.registers[scopes.declare(name)] = kind
            if not tokens.accept(","):
                break
        tokens.expect(";")

    def _variables(self, space: str) -> None:
        mark = "param" if space == "param" else ""
        for variable in variables(self.tokens, space):
            if space == "param" and self.scopes.name(variable.name) is not None:
                # ptxas continues with the outer one
                raise self.tokens.saying("{name} is declared twice", name=variable.name)
            name = self.scopes.declare(variable.name, mark)
            if not variable.size:
                raise self.tokens.saying("{name} has no size", name=variable.name)
            self.function.variables.append(replace(variable, name=name))

    def _table(self, label: str) -> None:
        """``.branchtargets A, B;``: where a brx.idx may go. The other directives
        only concern calls through pointers."""
        tokens = self.tokens
        directive = tokens.advance()
        if directive == ".callprototype":
            self._prototype()
            return
        names = [tokens.word(Wanted.LABEL)]
        while tokens.accept(","):
            names.append(tokens.word(Wanted.LABEL))
        row = tokens.row
        tokens.expect(";")
        if directive == ".branchtargets":
            self.function.targets[label] = names
            for at in range(len(names)):
                self.scopes.use_label(names, at, row)

    def _prototype(self) -> None:
        """``.callprototype (.param .b32 _) _ (.param .b64 _);``"""
        tokens = self.tokens
        depth = 0
        while depth or tokens.value != ";":
            depth += {"(": 1, ")": -1}.get(tokens.value, 0)
            if tokens.kind == STRING or tokens.value in ("{", "}", ";", "@", ":") or depth < 0:
                raise tokens.unexpected(phrase("a prototype"))
            tokens.advance()
        tokens.advance()

    # --- instructions

    def _instruction(self, opcode: str, row: int, guard: str | None, *, negate: bool) -> None:
        tokens = self.tokens
        modifiers: list[str] = []
        while tokens.kind == DOT:
            if tokens.value[1].isdigit() and not tokens.adjacent:
                raise tokens.unexpected(Wanted.OPERAND)
            modifiers.append(tokens.advance())
            if len(modifiers) > _MAX_MODIFIERS:
                raise tokens.saying(
                    "{opcode} has more than {most} modifiers", opcode=opcode, most=_MAX_MODIFIERS
                )
        operands: list[str] = []
        self.parts = 0
        base = opcode
        opcode += "".join(modifiers)
        while tokens.value != ";":
            if operands:
                tokens.expect(",")
            if base == "bra" or (base == "brx" and len(operands) == 1):
                operands.append(tokens.word(Wanted.LABEL))
                self.scopes.use_label(operands, len(operands) - 1, row)
            elif base == "call" and tokens.value == "(":
                operands.append(self._list("(", ")", 0))
            elif base == "call" and self.scopes.is_label(tokens.value):
                operands.append(tokens.advance())
            elif base == "vmad" and tokens.value == "-" and tokens.next_kind == WORD:
                tokens.advance()
                operands.append("-" + self._named())
            else:
                operands.append(self._operand(0))
        tokens.advance()
        body = self.function.body
        if len(body) >= MAX_INSTRUCTIONS:
            raise tokens.saying(
                "a function has more than {most} instructions", most=MAX_INSTRUCTIONS
            )
        opcode = _usual_order(opcode)
        body.append(Instruction(opcode, operands, guard, negate, self.places.here, row))

    def _operand(self, depth: int) -> str:
        """An operand as one text, without unnecessary spaces."""
        tokens = self.tokens
        self.parts += 1
        if depth > _MAX_DEPTH or self.parts > _MAX_OPERANDS:
            raise tokens.saying("the operands of an instruction are too many, or nested too deep")
        if tokens.kind == WORD:
            return self._named()
        value = tokens.value
        if value == "{":
            return self._list("{", "}", depth + 1)
        if value == "[":
            return self._list("[", "]", depth + 1)
        if value == "!":
            tokens.advance()
            return "!" + self._predicate()
        if tokens.kind == NUMBER or value in ("-", "~", "("):
            return constant(tokens)
        raise tokens.unexpected(Wanted.OPERAND)

    def _named(self) -> str:
        """``%r1``, ``%tid.x``, ``%p1|%p2``, ``table + 4``."""
        tokens = self.tokens
        name = tokens.advance()
        text = self._name(name)
        if tokens.kind == DOT:
            special = name[0] == "%" and self.scopes.name(name) is None
            known = tokens.value in _AXES if special else _PIECES.fullmatch(tokens.value)
            if not known or not tokens.adjacent:
                raise tokens.unexpected(Wanted.OPERAND)
            return text + tokens.advance()
        if tokens.accept("|"):
            return f"{text}|{self._predicate()}"
        if tokens.accept("+"):
            return f"{text}+{expression(tokens)}"
        return text

    def _list(self, opening: str, closing: str, depth: int) -> str:
        tokens = self.tokens
        tokens.expect(opening)
        parts: list[str] = []
        while tokens.value != closing:
            if parts:
                tokens.expect(",")
            parts.append(self._operand(depth))
        tokens.advance()
        return opening + ", ".join(parts) + closing

    def _predicate(self) -> str:
        name = self.tokens.word(Wanted.PREDICATE)
        text = self._name(name)
        if text != "_" and self.function.register_type(text) != "pred":
            raise self.tokens.saying("{name} is no predicate", name=name)
        return text

    def _name(self, name: str) -> str:
        """The unique name that ``name`` stands for here."""
        if name == "_":
            return name
        found = self.scopes.name(name)
        if found is not None:
            return found
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        special = name[0] == "%" and not self.scopes.out_of_family(name)
        if not special and not self.knows(name):
            raise BadName(phrase("{name} is not declared", name=name))
        return name


def pragma(tokens: Tokens) -> None:
    """``.pragma "nounroll", "used_bytes_mask 255";``: hints for ptxas."""
    tokens.advance()
    tokens.take(STRING, Wanted.STRING)
    while tokens.accept(","):
        tokens.take(STRING, Wanted.STRING)
    tokens.expect(";")
