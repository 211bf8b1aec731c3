"""Source lines: the ``.file`` table and the ``.loc`` statements of PTX."""

import re
from pathlib import Path
from posixpath import normpath

from ptxsim.frontend.records import Location
from ptxsim.frontend.tokens import NUMBER, STRING, WORD, Tokens, Wanted
from ptxsim.text import phrase

_MAX_NUMBER = 2**31 - 1
_FILE = re.compile(r'^[ \t]*\.file[ \t]+(\d{1,9})[ \t]+"([^"\n]*)"', re.MULTILINE | re.ASCII)


def source_files(ptx: str) -> list[str]:
    """The names in the ``.file`` table."""
    return [name for _, name in _FILE.findall(ptx)]


_Position = tuple[int, int, int]  # file, line, column
_Inlined = tuple[_Position, int]  # and the index of what it is inlined into, -1: nothing


class Places:
    """The lines that instructions belong to. ``here`` is the index of the current one, or -1."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._files: dict[int, str] = {}
        self._indices: dict[_Inlined, int] = {}
        self._latest: dict[_Position, int] = {}  # index of what a position meant last
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
        # nvcc writes callers first. A template that calls itself is inlined at its own position.
        outer = -1
        if caller is not None:
            outer = self._latest.get(caller, -1)
            outer = self._index(caller, -1) if outer < 0 else outer
        self.here = outer if caller == position else self._index(position, outer)

    def _index(self, position: _Position, outer: int) -> int:
        index = self._indices.setdefault((position, outer), len(self._indices))
        self._latest[position] = index
        return index

    def locations(self) -> list[Location | None]:
        found: list[Location | None] = []
        for position, outer in self._indices:  # what it is inlined into comes before it
            found.append(self._location(position, found[outer] if outer >= 0 else None))
        return found

    def where(self, text: str) -> Location | None:
        """The current place if reading ends early; nvcc writes the files at the end."""
        if self.here < 0:
            return None
        for index, name in _FILE.findall(text):
            self._files.setdefault(int(index), name)
        return self.locations()[self.here]

    def _location(self, position: _Position, outer: Location | None) -> Location:
        """The place of a position; that of the call that it is inlined at where it is not below
        the source root."""
        file, line, _ = position
        name = self._files.get(file)
        if name is None:
            return outer or Location("?", line, False)
        path = Path(normpath(name))  # folder/../../usr is not below the folder
        if path.is_relative_to(self._root):
            path = path.relative_to(self._root)
        if not path.is_absolute() and path.parts[:1] != ("..",):
            return Location(path.as_posix(), line, True)
        if outer is None:
            return Location(name, line, False, (path.as_posix(),))
        outside = (path.as_posix(), *(each for each in outer.outside if each != path.as_posix()))
        return Location(outer.file, outer.line, outer.inside, outside)


def _position(tokens: Tokens) -> _Position:
    return _number(tokens), _number(tokens), _number(tokens)


def _number(tokens: Tokens) -> int:
    value = tokens.count(Wanted.NUMBER)
    if value > _MAX_NUMBER:
        raise tokens.saying("{value} is too large", value=value)
    return value
