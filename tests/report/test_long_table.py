"""Long tables fit the terminal and lose no character."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from grader.report.long_table import LongTable


def shown(width: int) -> list[str]:
    table = LongTable("Board", [("", True), ("student", False), ("history", False)], (1, 2))
    table.add(["1", "zhang_san", "▁▂▃▄▅▆▇█"])
    table.add(["12", "张三丰李四王五赵六", "█"], "dim")
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_columns_line_up() -> None:
    title, blank, header, rule, first, second = shown(80)
    assert (title, blank) == ("Board", "")
    assert header.index("student") == first.index("zhang") == second.index("张")
    assert cell_len(second[: second.index("█")]) == header.index("history")
    assert first.startswith("  1  ") and set(rule.strip()) == {"─"}


@pytest.mark.parametrize("width", [20, 24, 30])
def test_nothing_is_lost_in_a_narrow_terminal(width: int) -> None:
    lines = shown(width)
    assert max(map(cell_len, lines)) <= width
    assert len(lines) > 6
    for text in ("zhang_san", "张三丰李四王五赵六", "▁▂▃▄▅▆▇█"):
        left = list("".join(lines[4:]))
        for char in text:
            left.remove(char)
