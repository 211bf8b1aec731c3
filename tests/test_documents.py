"""Documents: links lead somewhere, measurements are tables, and docs/ stays small."""

import json
import re
from pathlib import Path

import pytest

from tests.support.files import tracked
from tests.support.places import ROOT

DOCS = ROOT / "docs"
MEASUREMENTS = sorted((DOCS / "measurements").glob("*.txt"))
HEAD = ("Machine", "Date", "Commit", "Command")
MOST_LINES, MOST_BYTES = 120, 1_700_000
LINK = re.compile(r"\]\(([^)\s]+)\)")
MEASUREMENT = re.compile(r"20\d\d-\d\d-\d\d-h[12]00-[\w-]+\.\w+")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`[^`\n]*`")


def anchors(document: Path) -> set[str]:
    """As GitHub names its headings."""
    text = CODE.sub("", document.read_text(encoding="utf-8"))
    titles = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title) for title in HEADING.findall(text))
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", tracked("*.md"), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for target in LINK.findall(INLINE.sub("", CODE.sub("", text))):
        if "://" in target or target.startswith("mailto:"):
            continue
        file, _, anchor = target.partition("#")
        leads_to = document.parent / file if file else document
        assert leads_to.exists(), target
        assert not anchor or leads_to.suffix != ".md" or anchor in anchors(leads_to), target


def test_code_names_measurements_that_are_there() -> None:
    names = {path.name for path in MEASUREMENTS}
    assert names
    for path in tracked("*.py", "*.cu", "*.cuh", "*.hpp", "*.cpp", "*.txt", "*.md", "*.json"):
        missing = set(MEASUREMENT.findall(path.read_text(encoding="utf-8"))) - names
        # Only the way to the history names a log that is no more.
        assert not missing or path == DOCS / "measurements" / "README.md", (path, missing)


@pytest.mark.parametrize("path", MEASUREMENTS, ids=lambda path: path.stem)
def test_a_measurement_is_a_table_under_its_head(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= MOST_LINES
    assert lines[4] == ""
    for line, field in zip(lines, HEAD, strict=False):
        assert re.match(rf"{field}: \S", line), line


def test_every_measurement_has_a_reader() -> None:
    read = "".join(
        path.read_text(encoding="utf-8")
        for path in tracked("*.md", "*.py", "*.cu", "*.cuh", "*.txt")
        if path.parent != DOCS / "measurements"
    )
    assert [path.name for path in MEASUREMENTS if path.name not in read] == []


def test_docs_hold_no_raw_material() -> None:
    assert sum(path.stat().st_size for path in tracked("docs/*")) <= MOST_BYTES


def test_tests_that_documents_name_are_there() -> None:
    for document in tracked("*.md"):
        named = re.findall(r"\b(?:ptxsim/)?tests/\w[\w/]*\.py\b", document.read_text("utf-8"))
        missing = [name for name in named if not (ROOT / name).exists()]
        assert missing == [], document


def test_the_devcontainer_runs_the_readmes_command() -> None:
    folder = ROOT / ".devcontainer"
    given = json.loads((folder / "devcontainer.json").read_text())
    assert f"\n```\n{given['postCreateCommand']}\n```\n" in (ROOT / "README.md").read_text()
    dockerfile = (folder / given["build"]["dockerfile"]).read_text()
    assert f"AS {given['build']['target']}\n" in dockerfile
    assert all(f"ARG {name}=" in dockerfile for name in given["build"]["args"])
    assert (folder / given["build"]["context"]).resolve() == ROOT
