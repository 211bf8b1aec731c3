"""The course's side of ``grade submit``: one request on one connection.

The client sends a line of JSON and, with a hand-in, the bytes of the files that the line lists. The
answer is lines of JSON; behind a "file" come its bytes, and "end" is the last.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import msgspec

import grader
from grader.base import (
    ENGLISH,
    GraderError,
    Language,
    MachineError,
    Rejected,
    UsageError,
    choose_language,
    decode,
    known_languages,
    moment,
)
from grader.course.hand_ins import HandIn, HandIns, KeptHandIn, check_sizes, split_files
from grader.course.roster import Parties, read_roster
from grader.labs import DEFAULT_LAB, Lab, instead_of, lateness, load_lab, shipped_labs
from grader.results import store
from ptxsim.plan import Record
from ptxsim.text import Message, clauses, phrase

VERSION = 1  # of the protocol
_PATIENCE_S = 300  # for a request to arrive
_SLURM_S = 60.0
_MOST_LINE = 1 << 16
_LISTED = 10  # hand-ins
# What a client may choose, as sbatch and a path take it.
_WORDS = {
    "gpu": re.compile(r"\w[\w-]{0,39}"),
    **dict.fromkeys(
        ("partition", "constraint", "account"), re.compile(r"[\w(\[][\w.:,&|+*()\[\]-]{0,79}")
    ),
}
_OVER = [
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "TIMEOUT",
]


class Request(Record):
    """What a client asks for."""

    do: Literal["hello", "submit", "follow", "status", "cancel", "board"]
    version: int
    language: str = "en"
    lab: str = ""  # "": the course's own
    labs: tuple[str, ...] = ()  # digests of the lab that the client knows
    gpu: str = ""  # type
    partition: str = ""
    constraint: str = ""
    account: str = ""
    files: tuple[tuple[str, int], ...] = ()  # names, and bytes behind this line
    again: str = ""  # makes another hand-in of the same files
    profile: bool = False
    follow: bool = True  # until the job is over
    id: str = ""  # the beginning of a hand-in's; "": the newest
    offset: int = 0  # bytes of the log that the client has


class Place(NamedTuple):
    """A job in the queue."""

    state: str  # Slurm's word
    number: int  # among those that wait in its partition; 0: it does not wait
    reason: str  # why it waits


class Service:
    """One connection. Everything of the site comes from slurm/serve.sh."""

    def __init__(self, home: Path, student: str, *, shared: bool) -> None:
        """home: the checkout. shared: all students use this account. Raises GraderError."""
        self._script, self._shared = home / "slurm" / "serve.sh", shared
        entries = (entry.partition("=") for entry in self._site("settings").split("\0"))
        self._settings = {name: value for name, _, value in entries}
        self._period = float(self._settings.get("GRADE_POLL") or 15)
        self._folder = Path(self._settings["GRADE_SUBMIT"])
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if roster := self._settings.get("GRADE_ROSTER"):  # a group is one
            student = Parties(read_roster(Path(roster))).party(student)
        if store.folder_name(student) != student:
            raise UsageError.saying("--student {name}: use letters and digits", name=ascii(student))
        self._student, self._hand_ins = student, HandIns(self._folder / student)
        self._language: Language = ENGLISH

    def serve(self, source: BinaryIO, target: BinaryIO) -> int:
        """Answer one request. Returns the exit status, which the client is told."""
        self._source, self._target = source, target
        signal.alarm(_PATIENCE_S)
        try:
            self._send("hello", **{"grade-submit": VERSION})
            request = self._request()
            status = int(getattr(self, f"_{request.do}")(request) or 0)
        except BrokenPipeError:
            raise
        except (GraderError, OSError) as error:
            failure = error if isinstance(error, GraderError) else MachineError.of(error)
            self._send("error", text=self._language(failure.message))
            status = 2 if isinstance(error, Rejected) else failure.exit_status
        finally:
            signal.alarm(0)
        self._send("end", status=status)
        return status

    def _site(self, *words: str, **settings: str) -> str:
        """Return what slurm/serve.sh prints. Raises MachineError in its last words."""
        try:
            done = subprocess.run(
                [self._script, *words],
                env={**os.environ, **settings},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_SLURM_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise MachineError(str(error)) from None
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["?"])[-1]
            raise MachineError.saying("Slurm or the course's settings: {why}", why=last)
        return done.stdout.rstrip("\n")

    def _send(self, kind: str, **fields: Any) -> None:
        self._target.write(msgspec.json.encode({"say": kind, **fields}) + b"\n")
        self._target.flush()

    def _say(self, words: Message) -> None:
        self._send("text", text=self._language(words))

    def _request(self) -> Request:
        try:
            request = decode(self._source.readline(_MOST_LINE), Request)
        except (msgspec.MsgspecError, ValueError):
            raise UsageError.saying("not a request of grade submit") from None
        if request.language in known_languages():
            self._language = choose_language(request.language, {})
        if request.version != VERSION:
            raise UsageError.saying("another version of grade-submit.py; get the course's")
        for name, plain in _WORDS.items():
            value = getattr(request, name)
            if value and not plain.fullmatch(value):
                raise UsageError.saying("{name}: not understood", name=name)
            ours = name == "gpu" and value in self._settings.get("GRADE_TYPES", "").split()
            if value and self._shared and not ours:
                raise UsageError.saying("{name}: the course chooses it; leave it out", name=name)
        return request

    def _lab(self, name: str) -> tuple[str, Lab]:
        """Return the lab of this name, beside the course's own or shipped, and its file. Raises
        LabError."""
        own = Path(self._settings.get("GRADE_LAB") or DEFAULT_LAB).absolute()
        known = {**shipped_labs(), **{path.stem: path for path in own.parent.glob("*.yaml")}}
        if name and name not in known:
            none = phrase("no lab {lab} in this course; {remedy}", lab=name)
            raise UsageError(none.given(remedy=instead_of(name, tuple(known))))
        file = known[name] if name else own
        return str(file), load_lab(file)

    # --- what is asked ---------------------------------------------------------------------------

    def _hello(self, request: Request) -> None:
        """Say what is here, and whether Slurm would take a job."""
        file, lab = self._lab(request.lab)
        options = ["--test-only", *_options(request)]
        self._site("submit", request.gpu, str(self._folder), *options, GRADE_LAB=file)
        self._send(
            "facts",
            student=self._student,
            lab=lab.id,
            sha256=lab.public_sha256,
            grader=grader.__version__,
            python=platform.python_version(),
            slurm=self._site("version"),
        )

    def _submit(self, request: Request) -> int:
        size = check_sizes(request.files)
        content = self._source.read(size)
        now = datetime.now().astimezone()
        signal.alarm(0)
        if len(content) < size:
            raise MachineError.saying("the files came cut short; nothing was handed in")
        file, lab = self._lab(request.lab)
        if request.labs and {*request.labs} != {lab.public_sha256}:
            other = phrase(
                "the lab {lab} is another version here: update yours and run --setup again"
            )
            raise UsageError(other.given(lab=lab.id))
        asked = msgspec.structs.replace(request, language="", labs=(), follow=True)
        digest = hashlib.sha256(msgspec.json.encode(asked) + file.encode() + content).hexdigest()
        facts = HandIn(
            id=digest[:16],
            student=self._student,
            lab=lab.id,
            when=now.isoformat(timespec="seconds"),
            sha256="",
            out=str(Path(self._settings["GRADE_OUT"]) / request.gpu),
        )
        files = split_files(request.files, content)
        with self._hand_ins.locked():
            kept = self._known(facts.id)
            if kept and self._counts(kept):
                again = phrase("The same was handed in at {when}; --again hands it in anew.")
                self._say(again.given(when=kept.facts.when))
            else:
                if kept:  # what the machine lost keeps its time
                    facts = msgspec.structs.replace(facts, when=kept.facts.when)
                self._refuse_beyond_limits(facts, now)
                kept = self._hand_ins.keep(facts, files, lab.problem.interface.main)
                self._start(kept, file, request)
        self._send("job", id=kept.facts.id, job=kept.job)
        self._say(_arrival(kept.facts, lab))
        return self._watch(kept, request.offset) if request.follow else 0

    def _start(self, kept: KeptHandIn, lab: str, request: Request) -> None:
        """Give it to Slurm. Whoever tells this process to end meanwhile waits for the note."""
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        # All students of a shared account are one user.
        sandbox = " --sandbox require" if self._shared else ""
        settings = {
            "GRADE_LAB": lab,
            "GRADE_HAND_IN": str(kept.folder),
            "GRADE_PROFILE": "1" if request.profile else "",
            "SUBMIT_OPTIONS": f"--submitted {kept.facts.when}{sandbox}",
        }
        options = [f"--job-name=grade-{kept.facts.id}", *_options(request)]
        job = self._site("submit", request.gpu, str(kept.files), *options, **settings)
        kept.note("job", f"{job} {time.time()}")

    def _known(self, id: str) -> KeptHandIn | None:
        """Return the hand-in with this id; asks for its job where a crash left no note of it."""
        kept = next((each for each in self._hand_ins.all() if each.facts.id == id), None)
        if kept is None or kept.job:
            return kept
        if job := kept.words("ended")[0] or self._site("find", f"grade-{id}"):
            kept.note("job", f"{job} {time.time()}")
        return kept

    # --- limits ----------------------------------------------------------------------------------

    def _queue(self) -> tuple[float, Mapping[str, Place]]:
        """Return when Slurm last told the queue, in seconds since 1970, and its jobs."""
        with contextlib.suppress(MachineError):
            self._site("queue")
        with contextlib.suppress(OSError, ValueError):
            head, *lines = (self._folder / "queue").read_text().splitlines()
            jobs = (line.split("|", 3) for line in lines if line.count("|") >= 3)
            found = {job: Place(state, int(number), why) for job, state, number, why in jobs}
            return float(head.split()[1]), found
        return 0.0, {}

    def _over(self, kept: KeptHandIn) -> bool:
        job, given = kept.words("job")
        if kept.status is not None or not job:
            return True
        told, jobs = self._queue()
        # A little later than it was given: another machine may have asked, with a clock of its own.
        return jobs[job].state in _OVER if job in jobs else told > float(given) + 2 * self._period

    def _counts(self, kept: KeptHandIn) -> bool:
        """Whether it is an attempt: what the machine lost or refused, and what was cancelled before
        it began, is none."""
        if kept.cancelled:
            return kept.log.exists()
        return not self._over(kept) if kept.status is None else kept.status in (0, 1)

    def _refuse_beyond_limits(self, facts: HandIn, now: datetime) -> None:
        """Raises UsageError that says when the next hand-in is possible."""
        others = [kept for kept in self._hand_ins.all() if kept.facts.id != facts.id]
        if busy := next((kept for kept in others if not self._over(kept)), None):
            wait = phrase(
                "job {job} of yours is not over: --fetch {id} waits, --cancel {id} ends it"
            )
            raise UsageError(wait.given(job=busy.job, id=busy.facts.id))
        limit = int(self._settings.get("GRADE_ATTEMPTS") or 0)
        today = [
            kept
            for kept in others
            if kept.facts.lab == facts.lab
            and moment(kept.facts.when).astimezone(now.tzinfo).date() >= now.date()
            and self._counts(kept)
        ]
        if limit and len(today) >= limit:
            morning = datetime.combine(
                now.date() + timedelta(days=1), datetime.min.time(), now.tzinfo
            )
            used = phrase(
                "all hand-ins of today for {lab} are used ({limit}); the next from {when} on"
            )
            when = morning.isoformat(timespec="minutes")
            raise UsageError(used.given(lab=facts.lab, limit=limit, when=when))

    # --- what became of it -----------------------------------------------------------------------

    def _follow(self, request: Request) -> int:
        return self._watch(self._hand_ins.find(request.id), request.offset)

    def _watch(self, kept: KeptHandIn, offset: int) -> int:
        """Send the log as it grows, what Slurm says of the job, and at the end the results."""
        signal.alarm(0)
        told, next_look, patience = "", 0.0, 3  # looks, until what a node wrote is seen here
        while kept.status is None and patience:
            offset = self._send_log(kept, offset)
            if time.monotonic() >= next_look:
                next_look = time.monotonic() + self._period
                patience = patience - 1 if self._over(kept) else 3
                state = self._language(self._state(kept))
                self._send("state", text="" if state == told else state)  # also a sign of life
                told = state
            if select.select([self._source], [], [], 0.5)[0]:  # the client is gone
                return 0
        self._send_log(kept, offset)
        if kept.status not in (0, 1):
            self._say(phrase("No result was recorded; the same can be handed in again."))
            return 2 if kept.status == 2 else 3
        for path in kept.results():
            content = path.read_bytes()
            name = path.relative_to(kept.facts.out).as_posix()
            self._send("file", name=name, size=len(content))
            self._target.write(content)
        return kept.status

    def _send_log(self, kept: KeptHandIn, offset: int) -> int:
        """Send the whole lines behind ``offset``, and return where they end."""
        with contextlib.suppress(FileNotFoundError), kept.log.open("rb") as file:
            file.seek(offset)
            while line := file.readline(_MOST_LINE):
                if line.endswith(b"\n") or len(line) == _MOST_LINE:
                    offset += len(line)
                    self._send("log", text=line.decode(errors="replace"), offset=offset)
        return offset

    def _state(self, kept: KeptHandIn) -> Message:
        if self._over(kept):
            if kept.status in (0, 1) and (entry := kept.entry):
                found = phrase("{verdict}, {points:g} points", points=entry.points)
                return found.given(verdict=entry.verdict.value)
            return phrase("cancelled") if kept.cancelled else phrase("over, without a result")
        place = self._queue()[1].get(kept.job)
        if place and place.number and place.reason != "None":
            waits = phrase(
                "job {job} waits ({reason}) at place {number} in the queue", job=kept.job
            )
            return waits.given(reason=place.reason, number=place.number)
        state = place.state if place else "?"
        return phrase("job {job}: {state}", job=kept.job, state=state)

    def _status(self, _request: Request) -> None:
        for kept in self._hand_ins.all()[:_LISTED]:
            facts = kept.facts
            line = phrase("{id}  {when}  {lab}: {state}", id=facts.id, when=facts.when)
            self._say(line.given(lab=facts.lab, state=self._state(kept)))

    def _cancel(self, request: Request) -> None:
        kept = self._hand_ins.find(request.id)
        if self._over(kept):
            self._say(self._state(kept))
            return
        kept.note("cancelled", "")
        self._site("cancel", kept.job)
        self._say(phrase("Job {job} was cancelled.", job=kept.job))

    def _board(self, request: Request) -> None:
        """Send the board as the course shows it."""
        shown = self._settings.get("GRADE_BOARD") or "pseudonyms"
        if shown not in ("pseudonyms", "names"):
            raise UsageError.saying("this course shows no board")
        hidden = ["--pseudonyms"] if shown == "pseudonyms" else []
        asked = ["--lab", self._lab(request.lab)[0], "--language", self._language.code, *hidden]
        self._send("text", text=self._site("board", request.gpu, *asked))


def _options(request: Request) -> Sequence[str]:
    """Return the options for sbatch."""
    chosen = ((name, getattr(request, name)) for name in _WORDS if name != "gpu")
    return [f"--{name}={value}" for name, value in chosen if value]


def _arrival(facts: HandIn, lab: Lab) -> Message:
    """Say when it came, by this machine's clock, and how late that is."""
    words = phrase("Handed in at {when}", when=facts.when)
    due = lab.time.due_at if lab.time else None
    late = lateness(moment(facts.when), due, lab.time, 0.0) if due else None
    return clauses([words, late.words]) if late else words
