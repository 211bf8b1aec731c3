"""The house: a room imports only from the doors of rooms above it in this list."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import pytest

from tests.support.files import tracked

PACKAGE = Path(__file__).parents[1] / "grader"
ORDER = (
    *("base", "problems", "labs", "sandbox", "build", "model", "results", "record", "run"),
    *("judge", "report", "study", "course", "cli"),
)
SIMULATOR_DOORS = {
    "ptxsim",
    *(f"ptxsim.{door}" for door in ("text", "plan", "findings", "runtime")),
}
MODULES = sorted(PACKAGE.rglob("*.py"))
SIMULATOR = sorted((PACKAGE.parent / "ptxsim" / "src").rglob("*.py"))
SIMULATOR_TESTS = sorted((PACKAGE.parent / "ptxsim" / "tests").rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    """Modules of ours that this file imports, at any depth of its code."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the room"
            module = node.module or ""
            names = (
                [f"grader.{alias.name}" for alias in node.names] if module == "grader" else [module]
            )
        else:
            continue
        yield from (name for name in names if name.split(".")[0] in ("grader", "ptxsim"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_rooms_import_upwards_through_doors(path: Path) -> None:
    own = room(path)
    if own == "__init__":
        return
    assert own in ORDER, f"{own} has no place in the order of rooms"
    for name in imported(path):
        package, _, other = name.partition(".")
        if package == "ptxsim":
            assert name in SIMULATOR_DOORS, f"{path}: import from a door of ptxsim, not {name}"
            continue
        if other in ("", "__version__"):
            continue
        if other.split(".")[0] != own:
            assert "." not in other, f"{path}: import from the door, grader.{other.split('.')[0]}"
            assert ORDER.index(other) < ORDER.index(own), f"{own} imports {other}"


def test_no_command_imports_another() -> None:
    commands = {f"grader.cli.{path.stem}" for path in (PACKAGE / "cli").glob("*_command.py")}
    for name in commands:
        assert not {*imported(PACKAGE / "cli" / f"{name[11:]}.py")} & commands, name


def test_the_judge_neither_explains_nor_shows() -> None:
    for path in (PACKAGE / "judge").rglob("*.py"):
        assert not {*imported(path)} & {"grader.model", "grader.report", "grader.study"}, path


def test_a_class_is_marked_by_documents_alone() -> None:
    allowed = {f"grader.{name}" for name in ("base", "labs", "results", "report", "__version__")}
    for path in (PACKAGE / "course").rglob("*.py"):
        theirs = {name for name in imported(path) if name.startswith("grader.")}
        assert {name for name in theirs if not name.startswith("grader.course")} <= allowed, path


@pytest.mark.parametrize("path", [*SIMULATOR, *SIMULATOR_TESTS], ids=lambda path: path.name)
def test_the_simulator_knows_nothing_of_grading(path: Path) -> None:
    assert {name.split(".")[0] for name in imported(path)} <= {"ptxsim"}


def test_the_rooms_are_those_of_the_documents() -> None:
    """docs/developing.md lists every room, in the order of the imports."""
    text = (PACKAGE.parent / "docs" / "developing.md").read_text()
    places = [text.index(f"\n{room}/") for room in ORDER]
    assert places == sorted(places)


def test_only_the_gpu_device_imports_cupy() -> None:
    for path in MODULES:
        names = {
            name.split(".")[0]
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
            )
        }
        if names & {"cupy", "cupy_backends"}:
            own = path.parent == PACKAGE / "run" / "gpu"
            assert own or (room(path) == "problems" and path.name.endswith("on_gpu.py"))


# Built at import, or by a command that has no second thread.
OWN_DECODERS = {
    "ptxsim/src/ptxsim/execution/messages.py": ["msgspec.json.Decoder"],
    "ptxsim/src/ptxsim/findings/event_table.py": ["msgspec.json.decode"],
    "ptxsim/src/ptxsim/launch_files.py": ["msgspec.convert"],
}


def test_types_are_described_to_msgspec_in_one_place() -> None:
    """See base/records.py. Decoding to no type in particular describes none."""
    for path in (*MODULES, *SIMULATOR):
        name = path.relative_to(PACKAGE.parent).as_posix().removeprefix("grader/")
        tree = ast.parse(path.read_text())
        found = [ast.unparse(call.func) for call in ast.walk(tree) if _describes_a_type(call)]
        if name == "base/records.py":
            assert found, "the names that this test looks for"
        else:
            assert found == OWN_DECODERS.get(name, []), name
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("msgspec"):
                hidden = {alias.name for alias in node.names} & {"convert", "json", "msgpack"}
                assert not hidden, f"{name}: import msgspec, so that this test sees the calls"


def _describes_a_type(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call):
        return False
    module, _, last = ast.unparse(node.func).rpartition(".")
    if module.split(".")[0] != "msgspec":
        return False
    return last in {"convert", "Decoder"} or (
        last == "decode" and any(keyword.arg in {"type", None} for keyword in node.keywords)
    )


def test_every_room_has_its_tests() -> None:
    """``ladder``: of the programs in reference/."""
    tests = PACKAGE.parent / "tests"
    assert {path.parent.name for path in tests.glob("*/test_*.py")} == {*ORDER, "ladder", "whole"}


def test_no_test_module_imports_another() -> None:
    """What several of them need is in tests/support or in a conftest.py."""
    for path in (PACKAGE.parent / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
                mine = names[0] == "tests"
                assert not mine or not any(name.startswith("test_") for name in names), path


def test_no_file_name_has_a_space() -> None:
    names = [str(path) for path in tracked() if " " in path.name]
    assert names == []
