"""Source lines: the ``.file`` table and the ``.loc`` statements of PTX."""

import re
from pathlib import Path
from posixpath import normpath

from ptxsim.frontend.records import Location
from ptxsim.frontend.tokens import NUMBER, STRING, WORD, Tokens, Wanted
from ptxsim.message import phrase

_MAX_INLINED = 32  # nested inlined calls that are followed
_MAX_NUMBER = 2**31 - 1
_FILE = re.compile(r'^[ \t]*\.file[ \t]+(\d{1,9})[ \t]+"([^"\n]*)"', re.MULTILINE | re.ASCII)


def source_files(ptx: str) -> list[str]:
    """The names in the ``.file`` table."""
    return [name for _, name in _FILE.findall(ptx)]


_Position = tuple[int, int, int]  # file, line, column


class Places:
    """The lines that instructions belong to. ``here`` is the index of the current one, or -1."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._files: dict[int, str] = {}
        self._callers: dict[_Position, _Position | None] = {}
        self._chains: dict[tuple[_Position, ...], int] = {}
        self.here = -1

    def file(self, tokens: Tokens) -> None:
        """``.file 1 "sgemm.cu", 1700000000, 1234``: number, name, time and size."""
        tokens.advance()
        index = _number(tokens)
        if index in self._files:
            raise tokens.saying("there are two files {index}", index=index)
        self._files[index] = tokens.take(STRING, phrase("the name of a file"))[1:-1]
        if tokens.accept(","):
            tokens.take(NUMBER, phrase("a time"))
            tokens.expect(",")
            tokens.take(NUMBER, phrase("a size"))

    def loc(self, tokens: Tokens) -> None:
        """``.loc 1 12 3, function_name $L__info_string0, inlined_at 1 20 7``: a fixed
        number of tokens, on any number of lines."""
        tokens.advance()
        position = _position(tokens)
        caller = None
        if tokens.accept(","):
            tokens.expect("function_name")
            tokens.take(WORD, Wanted.LABEL)
            if tokens.accept("+"):
                tokens.take(NUMBER, Wanted.OFFSET)
            tokens.expect(",")
            tokens.expect("inlined_at")
            caller = _position(tokens)
        if not position[1]:
            return  # line 0: the compiler's own code; it belongs to the line before it
        self._callers[position] = caller
        # nvcc writes callers first, so the chain is complete now.
        chain = [position]
        while caller is not None and len(chain) < _MAX_INLINED:
            chain.append(caller)
            caller = self._callers.get(caller)
        self.here = self._chains.setdefault(tuple(chain), len(self._chains))

    def locations(self) -> list[Location | None]:
        return [self._location(chain) for chain in self._chains]

    def where(self, text: str) -> Location | None:
        """The current place if reading ends early; nvcc writes the files at the end."""
        if self.here < 0:
            return None
        for index, name in _FILE.findall(text):
            self._files.setdefault(int(index), name)
        return self._location(list(self._chains)[self.here])

    def _location(self, chain: list[_Position] | tuple[_Position, ...]) -> Location:
        """The innermost place of a chain of inlined calls that is below the source root."""
        outside: list[str] = []
        for file, line, _ in chain:
            name = self._files.get(file)
            if name is None:
                continue
            path = Path(normpath(name))  # folder/../../usr is not below the folder
            if path.is_relative_to(self._root):
                path = path.relative_to(self._root)
            if not path.is_absolute() and path.parts[:1] != ("..",):
                return Location(path.as_posix(), line, True, tuple(outside))
            outside.append(path.as_posix())
        file, line, _ = chain[-1]
        return Location(self._files.get(file, "?"), line, False, tuple(outside))


def _position(tokens: Tokens) -> _Position:
    return _number(tokens), _number(tokens), _number(tokens)


def _number(tokens: Tokens) -> int:
    value = tokens.count(Wanted.NUMBER)
    if value > _MAX_NUMBER:
        raise tokens.saying("{value} is too large", value=value)
    return value
