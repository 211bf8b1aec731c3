"""Bad input of every kind the grader reads: one clear error that names the place, or a value.

Never a traceback, never a hang. The examples are the same in every run; SGEMM_FUZZ=5000 makes so
many new ones for each test, and what they find is kept here as an ``@example``.
"""

import copy
import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from grader.base.errors import GraderError, LabError, Rejected, UsageError
from grader.base.finding import Finding, Kind
from grader.base.gpus import standing_for
from grader.base.records import KernelInfo, Verdict
from grader.course import board_rendering as boards
from grader.course.classes import find_submissions
from grader.course.leaderboard import make_boards
from grader.course.roster import read_roster
from grader.labs.lab import DEFAULT_LAB, load_lab
from grader.labs.submission import load_submission
from grader.record.calls import Recorded, addresses, assembled
from grader.record.plan_check import Known, flaw
from grader.report import html, terminal
from grader.results import store
from grader.results.entries import read_entries
from grader.results.store import StoreError
from ptxsim import Declarations, Symbol
from ptxsim import plan as records
from ptxsim.findings import Severity
from ptxsim.frontend.interface import interface
from ptxsim.frontend.module import read_module
from ptxsim.frontend.reader import parse
from ptxsim.frontend.records import PtxError
from ptxsim.text import verbatim
from tests.support.pages import drawn, printed
from tests.support.product import MAIN
from tests.support.results import RACE, WRONG, make_result

MORE = int(os.environ.get("SGEMM_FUZZ", "0"))
FUZZ = settings(
    max_examples=MORE or 60,
    derandomize=not MORE,
    database=None,
    deadline=60_000,  # ms: nothing hangs, on a machine that others use too
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

# Values that nobody expects where they stand.
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["", "\x1b[2J", "a\nb", "../..", "0", "é", "\ud7ff", "=1+1", "1e999"]),
    st.lists(st.integers(), max_size=4),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
)


def places(document: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values in a document."""
    found = [here]
    if isinstance(document, dict):
        for key, value in document.items():
            found += places(value, (*here, key))
    elif isinstance(document, list):
        for index, value in enumerate(document):
            found += places(value, (*here, index))
    return found


@st.composite
def changed(draw: st.DrawFn, document: Any) -> Any:
    """The document with one to three values replaced, removed or added."""
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(document)))
        if not path:
            continue
        parent = document
        for key in path[:-1]:
            parent = parent[key]
        deed = draw(st.sampled_from(["replace", "replace", "remove", "add"]))
        if deed == "replace":
            parent[path[-1]] = draw(ODD)
        elif deed == "remove":
            del parent[path[-1]]
        elif isinstance(parent, dict):
            parent[draw(st.text(max_size=8))] = draw(ODD)
        else:
            parent.append(draw(ODD))
    return document


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Bytes with pieces cut out, doubled or overwritten."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 40)))
        piece = draw(st.sampled_from([b"", content[start:end] * 2, draw(st.binary(max_size=8))]))
        content = content[:start] + piece + content[end:]
    return content


def one_line(error: GraderError, *names: object) -> None:
    """What a user sees: one line of printable characters that names the file or the folder."""
    words = str(error)
    assert "\n" not in words, words
    assert len(words) < 2000, words
    assert any(str(name) in words for name in names), words


# --- lab files


@cache
def lab_document() -> Any:
    return yaml.safe_load(DEFAULT_LAB.read_text())


def try_lab(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    try:
        load_lab(path)
    except LabError as error:
        one_line(error, path)


@FUZZ
@given(document=changed(lab_document()))
def test_lab_values(tmp_path: Path, document: Any) -> None:
    try_lab(tmp_path / "lab.yaml", yaml.safe_dump(document, allow_unicode=True).encode())


@FUZZ
@given(content=damaged(DEFAULT_LAB.read_bytes()))
@example(content=b"&a [*a]")
@example(content=b"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]")
@example(content=b"[" * 1200)
@example(content=b"id: !!python/object/apply:os.system [true]")
@example(content=b"id: 2001-99-99")
@example(content=b"id: " + b"9" * 10000)
@example(content=b"\xff\xfe\x00")
def test_lab_bytes(tmp_path: Path, content: bytes) -> None:
    try_lab(tmp_path / "lab.yaml", content)


# --- result documents


@cache
def result_document() -> Any:
    return json.loads(
        store.encode(make_result(cases=(WRONG,), findings=(RACE,), verdict=Verdict.WA))
    )


def try_result(place: Path, content: bytes) -> None:
    """It is refused by name, or it can be shown in every way there is."""
    path = place / "quick" / "alice" / "0123456789ab-cpu.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    try:
        result = store.load(path)
    except StoreError as error:
        one_line(error, path)
    else:
        html.render(result, {})
        printed(result)
    entries, complaints = read_entries(place)
    for complaint in complaints:
        assert "\n" not in str(complaint)
    if entries:
        drawn(boards.terminal(make_boards(entries), None))


@FUZZ
@given(document=changed(result_document()))
def test_result_values(tmp_path: Path, document: Any) -> None:
    try_result(tmp_path, json.dumps(document).encode())


@FUZZ
@given(content=damaged(json.dumps(result_document()).encode()))
@example(content=b"[" * 100_000)
@example(content=b'{"schema": "sgemm-grader/result", "version": 1e999}')
def test_result_bytes(tmp_path: Path, content: bytes) -> None:
    try_result(tmp_path, content)


# --- rosters and exports

ROSTER = (
    b"student,name,submitted,due\n"
    b'alice,"Davis, Jr.",2026-01-31T10:00:00Z,2026-01-31T23:59:00+01:00\nbob,,,\n'
)
METADATA = (
    b"submission_1:\n  :submitters:\n  - :name: Ada\n    :sid: '007'\n    :email: a@b.c\n"
    b"  :created_at: 2026-01-31 10:00:00.5 -08:00\n"
)


@FUZZ
@given(content=damaged(ROSTER))
@example(content=b"student,due\nalice,9999-12-31T23:59:59-23:59\n")
@example(content=b"student,due\nalice,0001-01-01T00:00:00+23:59\n")
@example(content=b"student\n" + b"x" * 200_000)
@example(content=b'student\n"alice')
@example(content=b"student\na\0b\n")
def test_rosters(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "roster.csv"
    path.write_bytes(content)
    try:
        for person in read_roster(path).values():
            assert all(time.tzinfo for time in (person.submitted, person.due) if time)
    except UsageError as error:
        one_line(error, path)


@FUZZ
@given(content=damaged(METADATA))
@example(content=b"&a [*a]")
@example(content=b"submission_1: {':submitters': [1]}")
@example(content=b"[" * 1200)
def test_exports_of_gradescope(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "submission_1").mkdir(exist_ok=True)
    path = tmp_path / "submission_metadata.yml"
    path.write_bytes(content)
    try:
        find_submissions(tmp_path, MAIN)
    except UsageError as error:
        one_line(error, path, tmp_path)


# --- submissions


@FUZZ
@given(
    content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda t: t.encode())),
    name=st.text(
        st.characters(blacklist_characters="/\0", blacklist_categories=("Cs",)),
        min_size=1,
        max_size=30,
    ),
)
def test_folders(tmp_path_factory: pytest.TempPathFactory, content: bytes, name: str) -> None:
    folder = tmp_path_factory.mktemp("f")
    try:
        (folder / f"{name}.cuh").write_bytes(content)
    except OSError:
        return  # no name for a file here
    (folder / "sgemm.cu").write_bytes(content)
    try:
        load_submission(folder, MAIN)
    except Rejected as refusal:
        assert refusal.verdict is Verdict.FE
        one_line(refusal, "sgemm.cu", name, ascii(name)[1:-1])


# --- PTX, and what the recorder says

PTX = Path(__file__).with_name("fuzz.ptx").read_text()


@FUZZ
@given(content=damaged(PTX.encode()))
@example(content=b".entry a(" * 5000)
@example(content=b"{" * 10000)
@example(content=b"/*" * 10000)
@example(content=b".visible .func (" + b".param .b32 " * 5000)
def test_ptx(content: bytes) -> None:
    text = content.decode(errors="replace")
    try:
        parse(text, Path("/nowhere"))
    except PtxError as error:
        assert str(error)


SIZES = (40, 60, 24, 100)
AT = tuple(addresses(SIZES))
SLOT = records.PointerSlot(offset=0, allocation=0, delta=0)
OPERATIONS = (
    records.Memset(allocation=2, delta=0, value=0, size=24),
    records.Copy(source=0, source_delta=0, target=3, target_delta=4, size=8),
    records.SymbolWrite(symbol="table", delta=0, data=b"\0\0\0"),
    records.Launch(
        kernel="k",
        grid=(1, 1, 1),
        block=(32, 1, 1),
        shared_bytes=0,
        params=AT[0].to_bytes(8, "little"),
        pointers=(SLOT,),
    ),
)
MEMORY = tuple(
    records.Allocation(name=name, address=address, size=size)
    for name, address, size in zip(("A", "B", "C", "workspace 1"), AT, SIZES, strict=True)
)
CALLS = ((records.Allocate(allocation=3), *OPERATIONS), OPERATIONS, OPERATIONS)
RECORDED = msgspec.to_builtins(Recorded(allocations=MEMORY, calls=CALLS))
SIZE = records.Size.of(m=2, n=3, k=5)
OPERANDS = load_lab().problem.operands(SIZE)
KERNEL = interface(read_module(".entry k(.param .u64 k_0) {}", Path("/nowhere"))).entries
KNOWN = Known(
    declared=Declarations(
        entries=KERNEL, symbols={"table": Symbol(space="global", size=4, align=4)}
    ),
    figures={"k": KernelInfo(name="k", registers=8, shared_bytes=0, spill_bytes=0)},
    target=standing_for("sm_80"),
)


def test_the_plan_that_is_changed_is_sound() -> None:
    plan = assembled(
        msgspec.json.decode(json.dumps(RECORDED), type=Recorded),
        SIZE,
        OPERANDS,
        KNOWN.variables,
        KNOWN.declared.entries,
    )
    assert flaw(plan, OPERANDS, KNOWN) is None
    assert (len(plan.setup), len(plan.operations)) == (5, 4)


@FUZZ
@given(document=changed(RECORDED))
@example(document=RECORDED)
def test_plans_from_an_untrusted_process(document: Any) -> None:
    """What is sound stays inside its allocations, whoever wrote it."""
    try:
        recorded = msgspec.json.decode(json.dumps(document), type=Recorded)
    except (msgspec.DecodeError, ValueError):
        return
    plan = assembled(recorded, SIZE, OPERANDS, KNOWN.variables, KNOWN.declared.entries)
    if flaw(plan, OPERANDS, KNOWN) is not None:
        return
    sizes = [allocation.size for allocation in plan.allocations]
    assert sizes[:3] == [40, 60, 24]
    for operation in (*plan.setup, *plan.operations):
        if operation.__class__.__name__ == "Memset":
            assert 0 <= operation.delta <= operation.delta + operation.size
            assert operation.delta + operation.size <= sizes[operation.allocation]


@FUZZ
@given(message=st.text(max_size=300), file=st.text(max_size=50), line=st.integers(-5, 10**6))
def test_findings_of_any_text_can_be_shown(message: str, file: str, line: int) -> None:
    finding = Finding(
        kind=Kind.RACE, severity=Severity.ERROR, message=verbatim(message), file=file, line=line
    )
    result = make_result(cases=(WRONG,), findings=(finding,), verdict=Verdict.WA)
    page = html.render(result, {file: "one\ntwo\n"})
    shown = drawn(terminal.render(result, {file: "one\ntwo\n"}))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", shown)
    assert "\x1b" not in page
