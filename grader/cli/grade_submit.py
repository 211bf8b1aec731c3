#!/usr/bin/env python3
"""Hand in from any machine with Python 3.10 and ssh, to a course that grades on a cluster.

  grade-submit.py --setup HOST [--course FOLDER]     once: look at the host, write grade.toml
  grade-submit.py submissions/alice                  check it here, send it, fetch the result
  grade-submit.py --status | --board | --fetch [ID] | --cancel [ID]
  options: --to NAME  --lab LAB  --out results  --language en|zh
           --detach  --wait  --anyway  --again  --profile

This one file needs nothing else; ``grade submit`` is it, inside the grader. See docs/submit.md.
"""

from __future__ import annotations

import argparse
import configparser
import contextlib
import dataclasses
import json
import locale
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import IO, Any

VERSION = 1  # of the protocol
FILE = "grade.toml"
SUFFIXES = (".cu", ".cuh", ".h", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".ipp", ".tpp")
DONE, NOT_ACCEPTED, WRONG_USAGE, FAULT, INTERRUPTED = 0, 1, 2, 3, 130
_MOST_BYTES = 4 << 20  # of a submission
_MOST_RESULT = 1 << 29  # bytes that come back
_OURS = ("host", "folder", "lab_sha256")  # fields of a target that the course is not told
_TRIES = 5  # to reach a host that is busy
_BUSY = ("closed by", "Connection closed", "Connection reset", "refused", "timed out")
_KEYS = ("Permission denied", "Host key verification failed")
_HOST = re.compile(r"\w[\w.@:-]*")  # never an option of ssh
_PLAIN = re.compile(r'(?![. ])[^\\/:*?"<>|\x00-\x1f]+(?<![. ])')  # a name that any system can write
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # Windows' own
_ODD = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # would control a terminal


@dataclasses.dataclass(frozen=True)
class Target:
    """Where to hand in: a table [submit.NAME] of grade.toml. "" leaves a choice to the site."""

    host: str = ""  # for ssh
    folder: str = ""  # of the course there; "": the key starts what takes hand-ins
    lab: str = ""
    lab_sha256: str = ""  # of the lab when this was set up
    gpu: str = ""  # type, such as a100
    partition: str = ""
    constraint: str = ""
    account: str = ""


@dataclasses.dataclass(frozen=True)
class Call:
    """A command line."""

    folder: Path | None = None  # of a submission
    setup: str = ""  # a host
    course: str = ""  # the course's folder there
    to: str = ""  # name of a target
    lab: str = ""
    out: Path = Path("results")
    language: str = ""
    fetch: str | None = None  # the beginning of a hand-in's id; "": the newest
    cancel: str | None = None
    detach: bool = False
    wait: bool = False
    anyway: bool = False
    again: bool = False
    profile: bool = False
    status: bool = False
    board: bool = False


class Trouble(Exception):  # noqa: N818 - not always an error
    """Why it ends: a sentence that the grader's catalogues translate, and what fills its places."""

    def __init__(self, text: str, status: int = FAULT, **places: object) -> None:
        super().__init__(text)
        self.status, self.places = status, places


class Lost(Exception):  # noqa: N818
    """The connection ended before the answer did."""


def phrase(text: str) -> str:
    """Mark a text for the grader's catalogues."""
    return text


# --- grade.toml ----------------------------------------------------------------------------------


def course_file(here: Path) -> Path:
    """Return the nearest grade.toml, here or in a folder above, else the one to write here."""
    above = (each / FILE for each in (here, *here.parents))
    return next((file for file in above if file.is_file()), here / FILE)


def read_targets(file: Path) -> dict[str, Target]:
    """Return the tables [submit.NAME], whose entries are texts. Python 3.10 reads no TOML."""
    reader = configparser.RawConfigParser(
        strict=False, allow_no_value=True, inline_comment_prefixes=("#",)
    )
    found = {}
    try:
        reader.read_string(
            "[top]\n" + (file.read_text(encoding="utf-8-sig") if file.is_file() else "")
        )
        for table in reader.sections():
            if table.startswith("submit."):
                entries = {key: json.loads(value or "") for key, value in reader.items(table)}
                found[table[7:].strip('"')] = target = Target(**entries)
                if not _HOST.fullmatch(target.host):
                    raise ValueError(f"[{table}] host: {target.host!r}")
    except (OSError, ValueError, TypeError, configparser.Error) as error:
        why = str(error).splitlines()[0]
        raise Trouble(
            phrase('{file}: a target needs host = "NAME": {why}'), WRONG_USAGE, file=file, why=why
        ) from None
    return found


def write_target(file: Path, name: str, target: Target) -> None:
    """Put a table into grade.toml, in the place of an older one with this name."""
    text = file.read_text(encoding="utf-8-sig") if file.is_file() else ""
    text = re.sub(rf"(?m)^\[submit\.{re.escape(name)}\][^\n]*\n(?:(?!\[).*(?:\n|\Z))*", "", text)
    entries = (f"{key} = {json.dumps(value)}\n" for key, value in vars(target).items() if value)
    write(file, f"{text.rstrip()}\n\n[submit.{name}]\n{''.join(entries)}".lstrip().encode())


# --- files ---------------------------------------------------------------------------------------


def sent_name(path: PurePath) -> str:
    """Return how a file inside the submission is called there: with "/" on every system, and with
    composed letters, which macOS takes apart."""
    return unicodedata.normalize("NFC", path.as_posix())


def sources(folder: Path) -> dict[str, bytes]:
    """Return the source files of a submission by the names that they are sent under."""
    found: dict[str, Path] = {}
    for place, below, names in os.walk(folder):
        below[:] = [name for name in below if not name.startswith(".")]
        files = [name for name in names if name.endswith(SUFFIXES) and not name.startswith(".")]
        for path in (Path(place, name) for name in (*below, *files)):
            if path.is_symlink():
                raise Trouble(
                    phrase("{name}: a link; hand in the file itself"), WRONG_USAGE, name=path
                )
            if path.name in files:
                found[sent_name(path.relative_to(folder))] = path
    if not found:
        raise Trouble(phrase("{folder}: no source files"), WRONG_USAGE, folder=folder)
    if sum(path.stat().st_size for path in found.values()) > _MOST_BYTES:
        raise Trouble(phrase("{folder}: more than 4 MiB"), WRONG_USAGE, folder=folder)
    return {name: path.read_bytes() for name, path in sorted(found.items())}


def local_parts(name: str) -> list[str]:
    """Return the parts of a name that a host sent, if every system can write it inside a folder."""
    parts = name.split("/")
    if not all(_PLAIN.fullmatch(part) and not _DEVICES.fullmatch(part) for part in parts):
        raise Trouble(phrase("a file that is not written here was sent: {name}"), name=ascii(name))
    return parts


def write(path: Path, content: bytes) -> None:
    """Write a file completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ready = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        ready.write_bytes(content)
        ready.replace(path)
    finally:
        ready.unlink(missing_ok=True)


# --- the connection ------------------------------------------------------------------------------


class Connection:
    """One ssh, and the course's program behind it. ssh asks nothing: it has a key, and knows the
    host already."""

    def __init__(self, target: Target) -> None:
        self._host, folder = target.host, target.folder.rstrip("/")
        course = [f"{folder}/.venv/bin/grade" if folder else "grade", "serve-submission"]
        course += ["--home", folder] if folder else []
        options = ["-oBatchMode=yes", "-oServerAliveInterval=15", "-oServerAliveCountMax=4"]
        command = ["ssh", "-T", *options, "--", self._host, " ".join(map(shlex.quote, course))]
        self._errors, pipe = tempfile.TemporaryFile(), subprocess.PIPE  # noqa: SIM115 - while it runs
        try:
            self._ssh = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._errors)
        except FileNotFoundError:
            raise Trouble(phrase("ssh is missing: install OpenSSH")) from None
        assert self._ssh.stdin and self._ssh.stdout
        self._to, self.stream = self._ssh.stdin, self._ssh.stdout

    def greeted(self) -> bool:
        """Whether the course answers; False where the host is only busy. What comes before its
        greeting is of the host's shell."""
        for line in iter(lambda: self.stream.readline(1 << 16), b""):
            if b'"grade-submit"' in line:
                return True
        self.close()
        self._errors.seek(0)
        last = self._errors.read().decode(errors="replace").splitlines()[-2:]
        host, why = self._host, " ".join(map(str.strip, last))
        if self._ssh.returncode != 255:
            text = phrase("{host}: no course, or in another folder (--course): {why}")
        elif any(word in why for word in _KEYS):
            text = phrase("{host}: run ssh {host} by hand and set up a key: {why}")
        elif why and not any(word in why for word in _BUSY):
            text = phrase("{host}: cannot be reached: {why}")
        else:
            return False
        raise Trouble(text, host=host, why=why)

    def messages(self, request: dict[str, Any], content: bytes) -> Iterator[dict[str, Any]]:
        """Send a request and yield what the course says, up to its end. Raises Lost."""
        with contextlib.suppress(OSError):  # who refuses it early does not read it all
            self._to.write(json.dumps(request).encode() + b"\n" + content)
            self._to.flush()
        while (line := self.stream.readline(1 << 20)).endswith(b"\n"):
            yield (message := json.loads(line))
            if message["say"] == "end":
                return
        raise Lost

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._to.close()
        try:
            self._ssh.wait(5)
        except subprocess.TimeoutExpired:
            self._ssh.kill()


# --- what is asked -------------------------------------------------------------------------------


class Client:
    """One command line, and how far it has come."""

    def __init__(
        self, call: Call, grader: tuple[str, ...] = (), translate: Callable[[str], str] = str
    ) -> None:
        """grader: the command that checks here; () for none."""
        self._call, self._grader, self._translate = call, grader, translate
        self._id = ""  # of the hand-in
        self._facts: dict[str, Any] = {}
        self._offset = 0  # in the log

    def run(self) -> int:
        """Do what is asked for. Returns the exit status."""
        call = self._call
        try:
            self._target = self._choose()
            if call.folder:
                return self._submit(call.folder)
            if call.setup:
                return self._set_up()
            for do, id in (("follow", call.fetch), ("cancel", call.cancel)):
                if id is not None:
                    return self._ask({"do": do, "id": id})
            return self._ask({"do": "board" if call.board else "status"})
        except Trouble as trouble:
            self._note(str(trouble), **trouble.places)
            return trouble.status
        except OSError as error:  # such as a full disk
            self._note("{why}", why=error)
            return FAULT
        except KeyboardInterrupt:
            if self._id:
                self._note(phrase("the job goes on: --fetch {id} brings its result"), id=self._id)
            return INTERRUPTED

    def _note(self, text: str, **places: object) -> None:
        self._print(f"grade-submit: {self._translate(text).format(**places)}\n", sys.stderr)

    def _print(self, text: str, stream: IO[str]) -> None:
        stream.write(_ODD.sub("", text))
        stream.flush()

    def _choose(self) -> Target:
        """Return the target that --to names, or the only one, or the one called ``default``."""
        file, name = course_file(Path.cwd()), self._call.to
        targets = read_targets(file)
        if self._call.setup:
            old = targets.get(name or "default", Target())
            folder, lab = self._call.course or old.folder, self._call.lab or old.lab
            if not _HOST.fullmatch(self._call.setup):
                raise Trouble(phrase("{host}: no host's name"), WRONG_USAGE, host=self._call.setup)
            return dataclasses.replace(old, host=self._call.setup, folder=folder, lab=lab)
        name = name or (next(iter(targets)) if len(targets) == 1 else "default")
        if name not in targets:
            text = phrase("no target {name} in {file} ({there}); --setup HOST makes it")
            there = ", ".join(targets) or "–"
            raise Trouble(text, WRONG_USAGE, file=file, name=name, there=there)
        return targets[name]

    def _check(self, folder: Path, lab: str) -> str:
        """Grade on this machine; return the lab's digest, "" if nobody knows it. Raises Trouble for
        what is wrong."""
        if not self._grader:
            self._note(phrase("no simulator on this machine: it is sent unchecked"))
            return ""
        with tempfile.TemporaryDirectory() as out:
            options = ["--device", "cpu", "--json", "-q", "--language", self._call.language]
            options += ["--no-report", "--out", out]
            own = re.search(r"^\s*lab\s*=", course_file(Path.cwd()).read_text("utf-8"), re.M)
            options += [] if own and not self._call.lab else ["--lab", lab] if lab else []
            command = [*self._grader, *options, "--", str(folder)]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        if done.returncode == NOT_ACCEPTED and not self._call.anyway:
            text = phrase("not accepted here, as grade {folder} shows; --anyway sends it")
            raise Trouble(text, NOT_ACCEPTED, folder=folder)
        if done.returncode > NOT_ACCEPTED:
            self._note(phrase("it could not be checked on this machine, and is sent"))
        return str(json.loads(done.stdout)["lab"]["sha256"]) if done.stdout else ""

    def _submit(self, folder: Path) -> int:
        call, target = self._call, self._target
        files, named = sources(folder), call.lab or target.lab
        self._note(phrase("to {host}: {names}"), host=target.host, names=", ".join(files))
        lab = PurePath(named).stem if named.endswith((".yaml", ".yml")) else named
        known = {self._check(folder, named), target.lab_sha256 if lab == target.lab else ""} - {""}
        request = {
            "do": "submit",
            "lab": lab,
            "labs": [] if call.anyway else sorted(known),
            "files": [[name, len(content)] for name, content in files.items()],
            "again": os.urandom(8).hex() if call.again else "",
            "profile": call.profile,
            "follow": not call.detach,
        }
        return self._ask(request, b"".join(files.values()))

    def _set_up(self) -> int:
        """Look at the other side, and write the target into grade.toml."""
        if status := self._ask({"do": "hello"}):
            return status
        file, facts = course_file(Path.cwd()), self._facts
        if self._grader:
            done = subprocess.run([*self._grader, "--version"], stdout=subprocess.PIPE, check=False)
            if done.stdout.decode().split()[-1:] != [facts["grader"]]:
                self._note(phrase("the grader here is another version: what it finds may differ"))
        known = {"lab": facts["lab"], "lab_sha256": facts["sha256"]}
        target = dataclasses.replace(self._target, **known)
        write_target(file, self._call.to or "default", target)
        self._note(phrase("written: {place}"), place=file)
        return DONE

    def _ask(self, request: dict[str, Any], content: bytes = b"") -> int:
        """Return the exit status that the course tells. A lost connection is made again with
        --wait. Raises Trouble."""
        site = {name: value for name, value in vars(self._target).items() if name not in _OURS}
        request = {"version": VERSION, "language": self._call.language, **site, **request}
        while True:
            try:
                return self._once(request, content)
            except Lost:
                if not self._call.wait:
                    break
            self._note(phrase("connection lost; trying again"))
            time.sleep(5)
            if self._id:  # what is handed in needs no second sending
                request, content = {**request, "do": "follow", "id": self._id, "files": []}, b""
            request["offset"] = self._offset
        if self._id:
            raise Trouble(phrase("connection lost; --fetch {id} brings the result"), id=self._id)
        raise Trouble(phrase("connection lost before an answer came; the same again counts once"))

    def _once(self, request: dict[str, Any], content: bytes) -> int:
        for tried in range(_TRIES):
            connection = Connection(self._target)
            if connection.greeted():
                break
            time.sleep(2**tried * (0.5 + random.random()))
        else:
            raise Lost
        try:
            for message in connection.messages(request, content):
                self._take(message, connection.stream)
            return int(message["status"])
        except (ValueError, LookupError, TypeError):  # the host's shell, or a part of a file
            raise Lost from None
        finally:
            connection.close()

    def _take(self, message: dict[str, Any], stream: IO[bytes]) -> None:
        kind, text = message["say"], message.get("text", "")
        if kind == "job":
            self._id = message["id"]
            self._note(phrase("handed in as {id}, job {job}"), id=self._id, job=message["job"])
        elif kind == "log":
            self._offset = message["offset"]
            self._print(text, sys.stdout)
        elif kind == "file":
            size = int(message["size"])
            if not 0 <= size <= _MOST_RESULT or len(content := stream.read(size)) < size:
                raise Lost
            place = self._call.out.joinpath(*local_parts(message["name"]))
            write(place, content)
            self._note(phrase("written: {place}"), place=place)
        elif kind == "facts":
            self._facts = message
        elif text:
            self._print(f"{text}\n", sys.stdout if kind == "text" else sys.stderr)


def main() -> None:
    """``python3 grade-submit.py``, or ``grade-submit`` of the wheel."""
    for stream in (sys.stdout, sys.stderr):  # a Windows console may lack a sign
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    for field in dataclasses.fields(Call)[1:]:
        taken: dict[str, Any] = {
            "default": field.default,
            "type": Path if field.name == "out" else str,
        }
        if field.default is None:
            taken |= {"nargs": "?", "const": ""}
        taken = {"action": "store_true"} if field.type == "bool" else taken
        parser.add_argument(f"--{field.name}", **taken)
    call = Call(**vars(parser.parse_args()))
    spoken = call.language or os.environ.get("LANG") or locale.getlocale()[0] or ""
    language = "zh_CN" if spoken.lower().startswith(("zh", "chinese")) else "en"
    grade = shutil.which("grade") if sys.platform == "linux" else None
    sys.exit(Client(dataclasses.replace(call, language=language), (grade,) if grade else ()).run())


if __name__ == "__main__":
    main()
