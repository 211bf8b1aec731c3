"""What each sandbox leaves open, in the words of result documents; SECURITY.md has it all."""

from __future__ import annotations

from typing import Literal

SandboxKind = Literal["bubblewrap", "landlock", "rlimits"]

_UNFILTERED = "no system call is refused: the kernel cannot filter them"
_EXPOSED: dict[SandboxKind, tuple[str, ...]] = {
    "bubblewrap": (),
    "landlock": (
        "a submission can ask whether a file exists, and for its size and times",
        "files of a compilation lie on the disk: each is limited in size, all together are not",
    ),
    "rlimits": (
        "the compiler can read and write what the user who grades can",
        "host code can write it too, and read it where the kernel has no Landlock",
        "command lines of other processes can be read",
    ),
}


def exposed(kind: SandboxKind, *, filtered: bool) -> tuple[str, ...]:
    """One sentence for each threat that stays."""
    return _EXPOSED[kind] if filtered else (*_EXPOSED[kind], _UNFILTERED)
