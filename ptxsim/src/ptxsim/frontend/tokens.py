"""PTX text → tokens, in one pass and as ptxas takes it apart.

What ptxas does was found by experiment (CUDA 13.0; ``tests/ptx_oddities.txt`` keeps the
cases): a comment ends at a line feed and at nothing else, comments do not nest, strings know no
escapes and may span lines, a number ends where its digits end. Where nvcc never writes what ptxas
would take (control characters, ``# 1 "file"``, a string across lines), the text is refused.
"""

import re

from ptxsim.frontend.records import PtxError
from ptxsim.text import Message, phrase, verbatim

WORD, DOT, NUMBER, STRING, MARK, END, BAD = range(1, 8)

_MAX_TEXT = 32 << 20  # characters
_MAX_WORDS = 200  # characters of a message: names come from the PTX

# The last alternative takes any character, so no match ever fails and none is tried twice.
_TOKEN = re.compile(
    r"""(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*(?:
    ([A-Za-z_%$][\w$]*)
    |(\.[A-Za-z0-9_]\w*(?:::\w+)*)
    |((?:0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}
       |\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|0[0-7]*U?|[1-9]\d*U?)(?![\w$]))
    |("[^"\n\\]*")
    |(<<|[{}()\[\],;:@!|=<>+\-*~&^])
    |(\Z)
    |(.)
    )""",
    re.ASCII | re.DOTALL | re.VERBOSE,
)
_FORBIDDEN = re.compile(r"[^\t\n\r\x20-\x7e]")


class Wanted:
    """Names of what the reader often expects, for complaints."""

    NAME = phrase("a name")
    TYPE = phrase("a type")
    STRING = phrase("a string")
    INSTRUCTION = phrase("an instruction")
    LABEL = phrase("a label")
    PREDICATE = phrase("a predicate")
    INTEGER = phrase("an integer of 64 bits at most")
    ELEMENTS = phrase("a number of elements")
    DATA = phrase("data of a section")
    NUMBER = phrase("a number")
    OFFSET = phrase("an offset")
    OPERAND = phrase("an operand")


class Tokens:
    """The tokens of a text; the current one is ``kind`` and ``value``."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._counted, self._row = 0, 1
        self.kind, self.value, self.end = BAD, "", 0
        self.before = 0  # where the token before the current one ended
        if len(text) > _MAX_TEXT:
            raise PtxError(
                phrase(
                    "the PTX is larger than {most} MB, the most that is read", most=_MAX_TEXT >> 20
                )
            )
        odd = _FORBIDDEN.search(text)
        if odd is not None:
            self.end = odd.end()
            raise self.saying(
                "the character {character} has no place in PTX", character=repr(odd[0])
            )
        self._next = _TOKEN.finditer(text).__next__
        self.advance()

    def advance(self) -> str:
        """Go to the next token; returns the value of the one that was current."""
        value = self.value
        if self.kind == END:
            raise self.saying("the PTX ends in the middle of a statement")
        match = self._next()
        self.before = self.end
        self.kind = match.lastindex or END
        self.value, self.end = match[self.kind], match.end()
        if self.kind == BAD:
            raise self.saying(
                "{text} is no token of PTX", text=repr(self._text[self.end - 1 : self.end + 20])
            )
        return value

    @property
    def row(self) -> int:
        """The line of the current token, from 1."""
        at = self.end - len(self.value)
        self._row += self._text.count("\n", self._counted, at)
        self._counted = at
        return self._row

    @property
    def adjacent(self) -> bool:
        """Whether nothing stands between the current token and the one before it."""
        return self.before == self.end - len(self.value)

    @property
    def next_kind(self) -> int:
        """The kind of the token behind the current one."""
        match = _TOKEN.match(self._text, self.end)
        return match.lastindex or END if match else END

    def error(self, what: Message) -> PtxError:
        short = {
            name: value[:_MAX_WORDS] if isinstance(value, str) else value
            for name, value in what.args.items()
        }
        return PtxError(
            phrase("line {row} of the PTX: {what}", row=self.row, what=what.given(**short))
        )

    def saying(self, text: str, /, **args: int | str | Message) -> PtxError:
        """The error with a sentence that catalogues translate, as of ``phrase``."""
        return self.error(Message(text=text).given(**args))

    def unexpected(self, wanted: Message) -> PtxError:
        found = (
            verbatim(repr(self.value[:40])) if self.kind != END else phrase("the end of the PTX")
        )
        return self.saying("expected {wanted}, found {found}", wanted=wanted, found=found)

    def accept(self, value: str) -> bool:
        """Pass over the current token if it is ``value``."""
        if self.value != value or self.kind == STRING:
            return False
        self.advance()
        return True

    def expect(self, value: str) -> None:
        if not self.accept(value):
            raise self.unexpected(verbatim(repr(value)))

    def take(self, kind: int, wanted: Message) -> str:
        """The current token, which must be of ``kind``; then the next becomes current."""
        if self.kind != kind:
            raise self.unexpected(wanted)
        return self.advance()

    def word(self, wanted: Message = Wanted.NAME) -> str:
        return self.take(WORD, wanted)

    def count(self, wanted: Message) -> int:
        """A plain integer: decimal, hexadecimal, octal or binary."""
        text = self.take(NUMBER, wanted)
        value = integer(text)
        if value is None:
            raise self.saying("expected {wanted}, found {found}", wanted=wanted, found=text)
        return value


def integer(text: str) -> int | None:
    """The value of an integer literal of 64 bits at most; None for any other number."""
    body = text.rstrip("U")
    if body[:2] in ("0x", "0X"):
        value = int(body, 16) if len(body) <= 18 else 1 << 64
    elif body[:2] in ("0b", "0B"):
        value = int(body, 2) if len(body) <= 66 else 1 << 64
    elif not body.isdigit() or len(body) > 30:
        return None
    else:
        value = int(body, 8) if body[0] == "0" else int(body)
    return value if value < 1 << 64 else None
