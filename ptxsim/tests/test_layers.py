"""Who imports whom in ptxsim."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import ptxsim

ROOT = Path(ptxsim.__file__).parent
MODULES = {
    ".".join(("ptxsim", *path.relative_to(ROOT).with_suffix("").parts)): path
    for path in sorted(ROOT.rglob("*.py"))
    if path.name != "__init__.py"
}
# Rooms in the order of the work; a room imports those before it. What several rooms speak of,
# programs and findings, holds no room up: see the test of cycles.
ORDER = ("text", "plan", "frontend", "lowering", "machine", "simulator", "launching", "cli")


def imported(name: str) -> Iterator[str]:
    """Modules of ptxsim that this one imports when it runs, not for its types alone."""
    tree = ast.parse(MODULES[name].read_text())
    for branch in [node for node in ast.walk(tree) if isinstance(node, ast.If)]:
        if ast.unparse(branch.test) == "TYPE_CHECKING":
            branch.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ptxsim":
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (each if each in MODULES else node.module or "" for each in full)


def test_no_module_needs_one_that_needs_it() -> None:
    TopologicalSorter({name: set(imported(name)) for name in MODULES}).prepare()


@pytest.mark.parametrize("name", MODULES)
def test_rooms_import_those_before_them(name: str) -> None:
    own = name.split(".")[1]
    if own in ORDER:
        others = {each.split(".")[1] for each in imported(name) if "." in each} & {*ORDER} - {own}
        assert all(ORDER.index(each) < ORDER.index(own) for each in others), others


@pytest.mark.parametrize("name", MODULES)
def test_inside_nobody_goes_through_the_doors(name: str) -> None:
    """A door imports from inside, so it cannot be used there."""
    assert not {*imported(name)} & {"ptxsim", "ptxsim.plan", "ptxsim.findings"}
