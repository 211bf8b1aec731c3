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
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, Literal

import msgspec

import grader
from grader import base
from grader.base import GraderError, MachineError, UsageError, moment
from grader.course.hand_ins import HandIn, HandIns, KeptHandIn, receive
from grader.course.roster import Parties, read_roster
from grader.labs import DEFAULT_LAB, Lab, instead_of, lateness, load_lab, shipped_labs
from grader.results import ResultEntry, store
from ptxsim.plan import Record
from ptxsim.text import NOTHING, Message, phrase, verbatim

VERSION = 1  # of the protocol
_MOST_LINE = 1 << 16
_PATIENCE_S = 300  # for a request to arrive
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_VALUE, _TYPE = re.compile(r"[\w(\[][\w.:,&|+*()\[\]-]{0,79}"), re.compile(r"\w[\w-]{0,39}")
_CHOICES = {"gpu": _TYPE, "partition": _VALUE, "constraint": _VALUE, "account": _VALUE}
_OVER = re.compile("BOOT_FAIL|CANCEL|COMPLETED|DEADLINE|FAILED|NODE_FAIL|OUT_OF_MEMORY|TIMEOUT")


class Request(Record):
    """A client's question."""

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


class Service:
    """One connection. All that is known of the site comes from slurm/serve.sh."""

    def __init__(self, home: Path, student: str, *, shared: bool) -> None:
        """home: the checkout. shared: all students use this account. Raises GraderError."""
        self._script, self._shared = home / "slurm" / "serve.sh", shared
        entries = (entry.partition("=") for entry in self._site("settings").split("\0"))
        self._settings = {name: value for name, _, value in entries}
        self._period = float(self._settings.get("GRADE_POLL") or 15)
        folder = Path(self._settings["GRADE_SUBMIT"])
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if roster := self._settings.get("GRADE_ROSTER"):  # a group is one
            student = Parties(read_roster(Path(roster))).party(student)
        if store.folder_name(student) != student:
            raise UsageError.saying("--student {name}: use letters and digits", name=ascii(student))
        self._student, self._hand_ins = student, HandIns(folder / student)
        self._language = base.ENGLISH

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
            status = 2 if isinstance(error, base.Rejected) else failure.exit_status
        finally:
            signal.alarm(0)
        self._send("end", status=status)
        return status

    def _site(self, *words: str, **settings: str) -> str:
        """Return what slurm/serve.sh prints. Raises MachineError in its last words."""
        command, environment = [str(self._script), *words], {**os.environ, **settings}
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["?"])[-1]
            raise MachineError.saying("Slurm or the course's settings: {why}", why=last)
        return done.stdout.strip("\n")

    def _send(self, kind: str, **fields: Any) -> None:
        self._target.write(msgspec.json.encode({"say": kind, **fields}) + b"\n")
        self._target.flush()

    def _say(self, words: Message) -> None:
        self._send("text", text=self._language(words))

    def _request(self) -> Request:
        """Raises UsageError for what this student may not ask for."""
        try:
            request = base.decode(self._source.readline(_MOST_LINE), Request)
        except (msgspec.MsgspecError, ValueError):
            raise UsageError.saying("not a request of grade submit") from None
        if request.language in base.known_languages():
            self._language = base.choose_language(request.language, {})
        if request.version != VERSION:
            raise UsageError.saying("another version of grade-submit.py; get the course's")
        chosen = {name: getattr(request, name) for name in _CHOICES if getattr(request, name)}
        for name, value in chosen.items():
            ours = name == "gpu" and value in self._settings.get("GRADE_TYPES", "").split()
            if not _CHOICES[name].fullmatch(value):
                raise UsageError.saying("{name}: not understood", name=name)
            if self._shared and not ours:
                raise UsageError.saying("{name}: the course chooses it; leave it out", name=name)
        chosen.pop("gpu", None)
        self._options = [f"--{name}={value}" for name, value in chosen.items()]  # of sbatch
        return request

    def _lab(self, name: str) -> tuple[Path, Lab]:
        """Return the file of this name, beside the course's own or shipped, and the lab. Raises
        LabError."""
        own = Path(self._settings.get("GRADE_LAB") or DEFAULT_LAB).absolute()
        known = {**shipped_labs(), **{path.stem: path for path in own.parent.glob("*.yaml")}}
        if name and name not in known:
            none = phrase("no lab {lab} in this course; {remedy}", lab=name)
            raise UsageError(none.given(remedy=instead_of(name, tuple(known))))
        file = known[name] if name else own
        return file, load_lab(file)

    # --- what is asked ---------------------------------------------------------------------------

    def _hello(self, request: Request) -> None:
        """Say what is here, once Slurm would take a job."""
        file, lab = self._lab(request.lab)
        options = ["--test-only", *self._options]
        self._site("submit", request.gpu, str(file.parent), *options, GRADE_LAB=str(file))
        here = phrase("{student}: lab {lab}, grader {grader}, Python {python}, {slurm}")
        here = here.given(student=self._student, lab=lab.id, grader=grader.__version__)
        self._say(here.given(python=platform.python_version(), slurm=self._site("version")))
        facts = {"lab": file.stem, "sha256": lab.public_sha256, "grader": grader.__version__}
        self._send("facts", **facts)

    def _submit(self, request: Request) -> int:
        files = receive(request.files, self._source)
        signal.alarm(0)
        now = datetime.now().astimezone()
        file, lab = self._lab(request.lab)
        if request.labs and {*request.labs} != {lab.public_sha256}:
            other = phrase("the lab {lab} is another version here: update yours, --setup again")
            raise UsageError(other.given(lab=lab.id))
        asked = msgspec.structs.replace(request, language="", labs=(), follow=True, id="", offset=0)
        digest = hashlib.sha256(msgspec.json.encode(asked) + bytes(file))
        digest.update(b"".join(files.values()))
        facts = HandIn(
            id=digest.hexdigest()[:16],
            student=self._student,
            lab=lab.id,
            when=now.isoformat(timespec="seconds"),
            out=str(Path(self._settings["GRADE_OUT"]) / request.gpu),
        )
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
        due = lab.time.due_at if lab.time else None
        late = lateness(moment(kept.facts.when), due, lab.time, 0.0) if due else None
        self._say(phrase("handed in at {when}", when=kept.facts.when))
        self._say(late.words if late else NOTHING)
        return self._watch(kept, request.offset) if request.follow else 0

    def _start(self, kept: KeptHandIn, lab: Path, request: Request) -> None:
        """Give it to Slurm. Whoever tells this process to end meanwhile waits for the note."""
        # All students of a shared account are one user.
        sandbox = " --sandbox require" if self._shared else ""
        settings = {
            "GRADE_LAB": str(lab),
            "GRADE_HAND_IN": str(kept.folder),
            "GRADE_PROFILE": "1" if request.profile else "",
            "SUBMIT_OPTIONS": f"--submitted {kept.facts.when}{sandbox}",
        }
        options = [f"--job-name=grade-{kept.facts.id}", *self._options]
        work = str(kept.folder / kept.facts.student)
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        try:
            job = self._site("submit", request.gpu, work, *options, **settings)
            kept.note("job", f"{job} {time.time()}")
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)

    def _known(self, id: str) -> KeptHandIn | None:
        """Return the hand-in with this id; asks for its job where a crash left no note of it."""
        kept = next(iter(self._hand_ins.all(id)), None)
        if kept and not kept.job:
            job = kept.words("ended")[0] or self._site("find", f"grade-{id}")
            kept.note("job", f"{job} {time.time()}" if job else "")
        return kept

    # --- limits ----------------------------------------------------------------------------------

    def _queue(self, kept: KeptHandIn) -> tuple[float, str, int, str]:
        """Return when Slurm last told the queue (seconds since 1970), and of the job its state, its
        place among those that wait in its partition (0: it does not wait), and why."""
        with contextlib.suppress(GraderError, ValueError):
            told, state, number, reason = self._site("queue", kept.job).split("|", 3)
            return float(told), state, int(number), reason
        return 0.0, "", 0, ""

    def _over(self, kept: KeptHandIn) -> bool:
        job, given = kept.words("job")
        if kept.status is not None or not job:
            return True
        told, state, _, _ = self._queue(kept)
        # A little later than it was given: another machine may have asked, with a clock of its own.
        return bool(_OVER.match(state)) if state else told > float(given) + 2 * self._period

    def _counts(self, kept: KeptHandIn) -> bool:
        """Whether it is an attempt: what the machine lost or refused, and what was cancelled before
        it began, is none."""
        if (kept.folder / "cancelled").exists():
            return kept.log.exists()
        return not self._over(kept) if kept.status is None else kept.status in (0, 1)

    def _refuse_beyond_limits(self, facts: HandIn, now: datetime) -> None:
        """Raises UsageError that says when the next hand-in is possible."""
        others = [kept for kept in self._hand_ins.all() if kept.facts.id != facts.id]
        if busy := next((kept for kept in others if not self._over(kept)), None):
            wait = phrase("job {job} is not over yet: --fetch {id} waits, --cancel {id} ends it")
            raise UsageError(wait.given(job=busy.job, id=busy.facts.id))
        limit = int(self._settings.get("GRADE_ATTEMPTS") or 0)
        today = now.replace(hour=0, minute=0, second=0, microsecond=0)
        ours = (kept for kept in others if kept.facts.lab == facts.lab)
        counted = [kept for kept in ours if moment(kept.facts.when) >= today and self._counts(kept)]
        if limit and len(counted) >= limit:
            when = (today + timedelta(days=1)).isoformat(timespec="minutes")
            used = phrase("{limit} of {limit} hand-ins a day for {lab} are used; again from {when}")
            raise UsageError(used.given(lab=facts.lab, limit=limit, when=when))

    # --- what became of it -----------------------------------------------------------------------

    def _find(self, id: str) -> KeptHandIn:
        if not re.fullmatch("[0-9a-f]*", id) or not (found := self._hand_ins.all(id)):
            raise UsageError.saying("no such hand-in; grade submit --status lists them")
        return found[0]

    def _follow(self, request: Request) -> int:
        return self._watch(self._find(request.id), request.offset)

    def _watch(self, kept: KeptHandIn, offset: int) -> int:
        """Send the log as it grows, what Slurm says of the job, and at the end the results."""
        signal.alarm(0)
        told, next_look, patience = "", 0.0, 3  # looks, until what a node wrote is seen here
        while kept.status is None and patience:
            offset = self._send_log(kept, offset)
            if time.monotonic() >= next_look:
                next_look = time.monotonic() + self._period
                gone = self._over(kept)
                patience = patience - 1 if gone else 3
                state = told if gone else self._language(self._state(kept))
                self._send("state", text="" if state == told else state)  # also a sign of life
                told = state
            if select.select([self._source], [], [], 0.5)[0]:  # the client is gone
                return 0
        self._send_log(kept, offset)
        if kept.status not in (0, 1):
            self._say(phrase("No result was recorded; the same can be handed in again."))
            return 2 if kept.status == 2 else 3
        for path in kept.results():
            content, name = path.read_bytes(), path.relative_to(kept.facts.out).as_posix()
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
            for path in kept.results()[::-1] if kept.status in (0, 1) else ():
                if path.suffix == ".json":
                    entry = store.load_as(path, ResultEntry)
                    verdict, points = entry.verdict.value, entry.points
                    if points is None or entry.by_model:  # which is no grade yet
                        return verbatim(verdict)
                    return phrase("{verdict}, {points:g} points", verdict=verdict, points=points)
            return phrase("over, without a result")
        _, state, number, reason = self._queue(kept)
        if number and reason != "None":
            waits = phrase("job {job} waits ({reason}) at place {number} in the queue")
            return waits.given(job=kept.job, reason=reason, number=number)
        return phrase("job {job}: {state}", job=kept.job, state=state or "?")

    def _status(self, _request: Request) -> None:
        for kept in self._hand_ins.all()[:10]:
            facts = kept.facts
            line = phrase("{id}  {when}  {lab}: {state}", id=facts.id, when=facts.when)
            self._say(line.given(lab=facts.lab, state=self._state(kept)))

    def _cancel(self, request: Request) -> None:
        kept = self._find(request.id)
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
        asked = ["--lab", str(self._lab(request.lab)[0]), "--language", self._language.code]
        self._send("text", text=self._site("board", request.gpu, *asked, *hidden))
