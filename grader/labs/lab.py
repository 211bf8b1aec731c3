"""lab.yaml → ``Lab``, course.yaml → ``Term``: the one place where these are read and checked.

Every mistake in the file becomes a one-line ``LabError`` that names the file, the field
(``performance[1].mnk``), what was expected there and what was found.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from grader.base import LabError, convert, gpus, one_line
from grader.labs.course_rules import TimeRules, wrong_times
from grader.labs.groups import KINDS, HiddenGroup, draw, read_seed
from grader.labs.scoring_rules import Positive
from grader.labs.shape import SWITCHES, LabFile, LabSettings, Rules, Shape, contradictions
from grader.labs.whole_program import ProgramFile, ProgramTask, find_task
from grader.labs.yaml_file import at, explain, instead_of, parse, read_file, show, wanted, wrong
from grader.problems import ADVICE, Dim, Problem, ProblemRef, WholeProgram, catalogue
from ptxsim.plan import Record, Size
from ptxsim.text import phrase, verbatim

DEFAULT_LAB = Path(__file__).parent / "sgemm.yaml"
LADDER_LAB = DEFAULT_LAB.with_name("ladder.yaml")
_NO_SCORE = ("topic", "time", "rubric", *SWITCHES)  # fields that change no score
_UNVOUCHED = phrase(
    "is Python, which would run with your rights, and only grade.toml names this lab; if you trust "
    "it, pass --lab {lab}"
)
HIDDEN = "hidden-"  # begins the id of a hidden case


class Case(Record):
    """One size to run. ``weight`` is its share in the score; 1 for cases without a score."""

    id: str
    size: Size
    weight: float = 1


class Hidden(Record):
    """Sizes that count and that nobody is told. All are () where their seed is not at hand."""

    weight: float  # of the group, against ``public_weight``
    public_weight: float
    seed_file: Path
    unsealed: str  # the lab's digest without the seed
    correctness: tuple[Case, ...] = ()
    performance: tuple[Case, ...] = ()
    cpu: tuple[Case, ...] = ()

    @property
    def known(self) -> bool:
        return bool(self.correctness or self.performance or self.cpu)


class Lab(LabSettings, kw_only=True):
    """A checked lab. Cases keep the order of the file; hidden ones stand apart."""

    # Of the file without ``_NO_SCORE``, of the problem's own file, and of the seed.
    sha256: str
    problem: Problem
    problem_ref: ProblemRef  # the same, for another process
    correctness: tuple[Case, ...]  # verified on a GPU, untimed
    performance: tuple[Case, ...]  # verified and timed on a GPU
    cpu: tuple[Case, ...]  # run by the simulator
    architectures: tuple[str, ...]  # "sm_80", "sm_90a"; the simulator compiles for the first
    hidden: Hidden | None = None
    program: ProgramTask | None = None  # whose cases that are not hidden are ``cpu``

    @property
    def public_sha256(self) -> str:
        """Return the digest that the lab has for everybody, with its seed and without."""
        return self.hidden.unsealed if self.hidden else self.sha256

    @property
    def timed(self) -> tuple[Case, ...]:
        """Every case that a GPU times."""
        return (*self.performance, *(self.hidden.performance if self.hidden else ()))

    def withheld(self, now: datetime | None = None) -> dict[str, str | None]:
        """Return the switches that are off, and until when, in ISO 8601; None: for good."""
        until: dict[str, str | None] = {"hide": None}
        if self.time and self.time.due_at:
            over = self.time.due_at + timedelta(minutes=self.time.grace_minutes)
            if (now or datetime.now(timezone.utc)) < over:
                until["after-due"] = over.isoformat(timespec="minutes")
        return {each: until[to] for each in SWITCHES if (to := getattr(self, each)) in until}

    def arch_on(self, gpu: str) -> str:
        """Return the target to compile for on a GPU of the architecture ``gpu``: sm_90a on one of
        sm_90, if the lab names that."""
        wanted = gpus.capability_of(gpu)
        return next(
            (each for each in self.architectures if gpus.capability_of(each) == wanted), gpu
        )


def shipped_labs() -> Mapping[str, Path]:
    """The labs that ship with the grader, by name."""
    return {path.stem: path for path in sorted(DEFAULT_LAB.parent.glob("*.yaml"))}


def find_lab(named: str | None) -> Path:
    """The lab file of a command line: a file, or the name of a lab that ships with the grader; by
    default the product of matrices. Raises LabError for a name that is neither."""
    if named is None:
        return DEFAULT_LAB
    shipped = shipped_labs()
    if "/" in named or "." in named or Path(named).is_file():
        return Path(named)
    if named not in shipped:
        remedy = instead_of(named, tuple(shipped))
        unknown = phrase("{name}: no such lab, and no such file; {remedy}", remedy=remedy)
        raise LabError(unknown.given(name=one_line(named)))
    return shipped[named]


def load_lab(path: Path | None = None, *, vouched: bool = True) -> Lab:
    """Read and check a lab file; ``None`` means the default lab. Unless somebody has vouched for
    it, it may not name Python of its own, which would run with the rights of whoever grades.

    Raises LabError, one line, for anything wrong with the file.
    """
    path = DEFAULT_LAB if path is None else path
    data, document = _extended(path)
    try:
        if document.get("kind") == "program":
            return _program_lab(path, data, document)
        if not vouched and str(document.get("problem")).endswith(".py"):
            raise LabError(at("problem", _UNVOUCHED.given(lab=str(path))))
        lab, file = _checked(path, data, document)
    except LabError as error:
        raise LabError(at(str(path), error.message)) from None
    return _with_hidden(lab, file, path) if file.groups else lab


def _checked(path: Path, data: bytes, document: dict[str, Any]) -> tuple[Lab, LabFile]:
    """The lab without hidden sizes, and its file. Raises LabError that does not name the file."""
    source = _source(path, document.pop("problem", catalogue.DEFAULT))
    try:
        kind = catalogue.problem_class(source)
    except LabError as error:
        raise LabError(at("problem", error.message)) from None
    shape = Shape(kind, document)
    try:
        file = convert(document, shape.record)
    except msgspec.ValidationError as error:
        raise LabError(explain(error, document, shape.record, shape.words)) from None
    if problem := next(contradictions(file, shape, kind), None):
        raise LabError(problem)
    names = kind.Options.__struct_fields__
    own = {name: document[name] for name in names if name in document}
    ref = ProblemRef(source=source, options=own)
    try:
        loaded = catalogue.load_problem(ref)
    except msgspec.ValidationError as error:  # options that do not go together
        raise LabError(verbatim(str(error))) from None
    for name in loaded.advice:
        if name not in ADVICE:
            words = phrase("there is no advice {name}; {remedy}", name=repr(name))
            words = words.given(remedy=instead_of(name, tuple(ADVICE)))
            raise LabError(at(f"{kind.__name__}.advice", words))
    timed = _plain_cases("performance", file.performance, shape, kind.dims)
    lab = Lab(
        **{name: getattr(file, name) for name in LabSettings.__struct_fields__},
        sha256=_digest(data, document, ref),
        problem=loaded,
        problem_ref=ref,
        correctness=_plain_cases("correctness", file.correctness, shape, kind.dims),
        performance=tuple(
            Case(id=entry.id or each.id, size=each.size, weight=entry.weight)
            for entry, each in zip(file.performance, timed, strict=True)
        ),
        cpu=_plain_cases("cpu", file.cpu, shape, kind.dims),
        architectures=tuple(f"sm_{each}" for each in file.architectures),
    )
    try:
        objections = [loaded.objection(case.size) for case in (*lab.correctness, *lab.performance)]
    except Exception as error:  # in a course's own file
        raise LabError(at("problem", catalogue.mistake(Path(source), error).message)) from None
    if objection := next(filter(None, objections), None):
        raise LabError(objection)
    return lab, file


def _program_lab(path: Path, data: bytes, document: dict[str, Any]) -> Lab:
    """Raises LabError that does not name the file."""
    try:
        file = convert(document, ProgramFile)
    except msgspec.ValidationError as error:
        raise LabError(explain(error, document, ProgramFile, {})) from None
    task = find_task(file, path.parent)
    ref = ProblemRef(source="program", options={})
    digest = hashlib.sha256(_digest(data, document, ref).encode())
    for name, content in (*task.course.items(), *task.given.items(), *task.solution.items()):
        digest.update(name.encode() + b"\0" + content)
    shared = set(LabSettings.__struct_fields__) & set(ProgramFile.__struct_fields__)
    return Lab(
        **{name: getattr(file, name) for name in shared},
        rules=Rules(findings=file.findings),
        sha256=digest.hexdigest(),
        problem=WholeProgram(file.files.student[0], file.title),
        problem_ref=ref,
        correctness=(),
        performance=(),
        cpu=tuple(
            Case(id=case.name, size=Size(dims={"case": case.name}), weight=case.weight)
            for case in file.cases
            if not case.hidden
        ),
        architectures=tuple(f"sm_{each}" for each in file.architectures),
        program=task,
    )


def _extended(path: Path) -> tuple[bytes, dict[str, Any]]:
    """The file and its fields, those included that it takes from the lab that it extends."""
    missing = phrase("{file}: no such lab file; check --lab or GRADE_LAB", file=str(path))
    data = read_file(path, missing)
    document = parse(path, data, DEFAULT_LAB)
    if "extends" not in document:
        return data, document
    named, shipped = document.pop("extends"), shipped_labs()
    base = shipped.get(named) if isinstance(named, str) else None
    if base is None:
        labs = phrase("one of {names}", names=", ".join(shipped))
        raise LabError(at(str(path), at("extends", wanted(labs, show(named)))))
    more, fields = _extended(base)
    fields.pop("id")
    return data + more, {**fields, **document}


def _digest(data: bytes, document: Mapping[str, Any], ref: ProblemRef) -> str:
    """Hash the lab for its results. What changes no score, such as a later due date, must not look
    like another lab."""
    if any(name in document for name in _NO_SCORE):
        rest = {name: value for name, value in document.items() if name not in _NO_SCORE}
        data = msgspec.json.encode((ref.source, rest), order="deterministic")
    digest = hashlib.sha256(data)
    if ref.file is not None:
        digest.update(ref.file.read_bytes())
    return digest.hexdigest()


def _with_hidden(lab: Lab, file: LabFile, path: Path) -> Lab:
    """The lab with its hidden group; without a seed that is empty."""
    assert file.groups is not None
    group = file.groups.hidden
    seed_file = path.parent / group.seed_file
    hidden = Hidden(
        weight=group.weight,
        public_weight=file.groups.public.weight,
        seed_file=seed_file,
        unsealed=lab.sha256,
    )
    seed = read_seed(seed_file)
    if seed is None:
        return msgspec.structs.replace(lab, hidden=hidden)
    try:
        cases = {kind: _drawn(group, kind, lab, seed) for kind in KINDS}
    except LabError as error:
        raise LabError(at(str(path), error.message)) from None
    # Another seed is another lab. The digest tells nothing of the seed.
    sealed = hmac.new(seed, f"lab {lab.sha256}".encode(), hashlib.sha256).hexdigest()
    return msgspec.structs.replace(
        lab, sha256=sealed, hidden=msgspec.structs.replace(hidden, **cases)
    )


def _drawn(group: HiddenGroup, kind: str, lab: Lab, seed: bytes) -> tuple[Case, ...]:
    # On a GPU two kinds run together, and an explanation or a standing is found by its size.
    public = (*lab.correctness, *lab.performance, *lab.cpu)
    others = _drawn(group, "performance", lab, seed) if kind == "correctness" else ()
    drawn = draw(
        getattr(group, kind),
        kind,
        lab.problem.dims,
        lab.multiple_of,
        seed,
        {case.size for case in (*public, *others)},
    )
    return tuple(
        Case(id=f"{HIDDEN}{kind}-{i}", size=size, weight=weight)
        for i, (size, weight) in enumerate(drawn)
    )


def _source(path: Path, named: object) -> str:
    """The problem as ``ProblemRef.source``: files are named relative to the lab file."""
    if not isinstance(named, str):
        known = verbatim(", ".join(map(repr, catalogue.names())))
        kinds = phrase("{one} or {other}", one=known, other="'NAME.py'")
        raise LabError(at("problem", wanted(kinds, show(named))))
    return str((path.parent / named).resolve()) if named.endswith(".py") else named


def _plain_cases(
    kind: str, entries: tuple[Any, ...], shape: Shape, dims: tuple[Dim, ...]
) -> tuple[Case, ...]:
    """The cases of these sizes; of one dimension a size is a number."""
    names, found = [dim.name for dim in dims], []
    for i, (given, inputs) in enumerate(map(shape.sized, entries)):
        extents = (given,) if isinstance(given, int) else given
        word = {"inputs": inputs} if inputs else {}
        size = Size(dims={**dict(zip(names, extents, strict=True)), **word})
        found.append(Case(id=f"{kind}-{i}", size=size))
    return tuple(found)


# --- hidden ------------------------------------------------------------------------------------


def revealed(lab: Lab) -> Lab:
    """The lab with its hidden sizes among the public ones, for who knows the secret, and with all
    of its help."""
    lab = msgspec.structs.replace(lab, **dict.fromkeys(SWITCHES, "show"))
    if lab.hidden is None:
        return lab
    shown = {kind: (*getattr(lab, kind), *getattr(lab.hidden, kind)) for kind in KINDS}
    return msgspec.structs.replace(lab, hidden=None, **shown)


# --- course.yaml -------------------------------------------------------------------------------


class TermLab(Record):
    lab: str  # its file beside course.yaml, or its name in ``grade labs``; once loaded, its id
    weight: Positive = 1  # only the ratio to the others' matters
    due: str | None = None  # ISO 8601 with a zone; instead of the lab file's
    roster: tuple[str, ...] = ()  # tables beside course.yaml: who hands it in, and when


class Term(Record):
    labs: Annotated[tuple[TermLab, ...], Meta(min_length=1)]  # in the order of their dates
    drop_lowest: Annotated[int, Meta(ge=0)] = 0  # labs that do not count
    late_days: Annotated[int, Meta(ge=0)] = 0  # of each student, for all labs


def load_term(path: Path) -> tuple[Term, list[Lab]]:
    """The term, and its labs with their dates of this file. Raises LabError, one line."""
    document = parse(path, read_file(path), Path("docs/lab-file.md"))
    try:
        term = convert(document, Term)
    except msgspec.ValidationError as error:
        raise LabError(at(str(path), explain(error, document, Term, {}))) from None
    found: dict[str, TermLab] = {}
    labs: list[Lab] = []
    last = None
    for i, given in enumerate(term.labs):
        field = f"{path}: labs[{i}]"
        file = shipped_labs().get(given.lab, path.parent / given.lab)
        if not file.is_file():
            near = [*shipped_labs(), *(each.name for each in path.parent.glob("*.yaml"))]
            raise LabError(wrong(f"{field}.lab", "term.none", remedy=instead_of(given.lab, near)))
        lab = load_lab(file)
        time = lab.time or TimeRules()
        time = msgspec.structs.replace(time, due=given.due or time.due)
        for mistake in wrong_times(time, field):
            raise LabError(mistake)
        if lab.id in found:
            raise LabError(wrong(f"{field}.lab", "term.twice", name=lab.id))
        if last and time.due_at and time.due_at < last:
            raise LabError(wrong(f"{field}.due", "term.order"))
        last = time.due_at or last
        tables = tuple(str(path.parent / name) for name in given.roster)
        found[lab.id] = msgspec.structs.replace(given, lab=lab.id, roster=tables)
        labs.append(msgspec.structs.replace(lab, time=time))
    if term.drop_lowest >= len(labs):
        raise LabError(wrong(f"{path}: drop_lowest", "term.fewer", count=len(labs)))
    return msgspec.structs.replace(term, labs=tuple(found.values())), labs
