"""``python -m tests.support.cheat_table`` writes the table of docs/cheats.md anew.

The page itself says which kind each cheat is of: a new one becomes a row ``| [its_name] |`` below
its kind. What stops it, and its verdicts, come from its first comment. A paragraph before the table
lists the cheats that no log shows on a GPU.
"""

import re

from tests.support.corpus import Fixture, cheats
from tests.support.places import ROOT

PAGE = ROOT / "docs" / "cheats.md"
LOGS = ROOT / "docs" / "measurements"
_SEEN = "Cheats that came to what they declare:"
_UNSEEN = "Without a GPU's verdict in a log: "


def page() -> str:
    """The page, its table from the corpus. Raises KeyError, with its name, for a cheat that is in
    no row or in two, and for a name on the page that no cheat has."""
    corpus = {cheat.folder.name: cheat for cheat in cheats()}
    logs = (log.read_text() for log in LOGS.glob("*-gpu-tests.txt"))
    seen = re.findall(r"\w+", "".join(log.partition(_SEEN)[2] for log in logs))
    unseen = ", ".join(f"`{name}`" for name in sorted(corpus.keys() - seen))
    head, rule, rest = PAGE.read_text().partition("|---|---|---|\n")
    table, gap, record = rest.partition("\n\n")
    rows: list[str] = []
    for kind in table.split("| **")[1:]:
        title, *lines = kind.splitlines()
        grouped: dict[str, list[str]] = {}
        for name in sorted(re.findall(r"\[(\w+)\]", "".join(lines))):
            shown, told = _cells(corpus.pop(name))
            grouped.setdefault(told, []).append(shown)
        rows.append(f"| **{title}")
        rows += [f"| {', '.join(names)} | {told} |" for told, names in grouped.items()]
    if corpus:
        raise KeyError(f"no row: {', '.join(corpus)}")
    known = {cheat.folder.name for cheat in cheats()}
    named = re.findall(r"`(\w+)`", "".join(re.findall(r"^\|[^|]+\|([^|]+)\|$", record, re.M)))
    if missing := set(named) - known:
        raise KeyError(f"no cheat: {', '.join(missing)}")
    head = re.sub(f"{_UNSEEN}.*", f"{_UNSEEN}{unseen or 'none'}.", head)
    return head + rule + "\n".join(rows) + gap + record


def _cells(cheat: Fixture) -> tuple[str, str]:
    """Its first cell, and the other two."""
    mark = "\\*" if cheat.needs_sandbox else ""
    if cheat.in_landlock:
        mark = f"\\*\\* (Landlock: {cheat.in_landlock.verdict.value})"
    assert cheat.gpu
    cpu, gpu = cheat.cpu.verdict.value, cheat.gpu.verdict.value
    verdict = cpu if cpu == gpu else f"{cpu}, GPU {gpu}"
    stopped = cheat.stopped_by.rstrip(".").replace("|", "\\|")
    name = cheat.folder.name
    return f"[{name}](../tests/cheats/{name}/sgemm.cu){mark}", f"{stopped} | {verdict}"


if __name__ == "__main__":
    PAGE.write_text(page())
