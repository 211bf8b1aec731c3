"""Others' CUDA programs, run by ``ptxsim exec``: ``python -m benchmarks.programs FOLDER…``.

Each FOLDER holds suites, a folder each (``benchmarks.program_suites`` finds their programs), or is
a manifest, which ``--manifest FILE`` writes instead of running. ``--draw 150 --seed N`` takes a
random sample. ``ptxsim nvcc`` builds each program, ``ptxsim exec`` runs it within ``--limit``
seconds, ``--jobs`` at once. The tables can be made again from what ``--json FILE`` keeps. TOML
given by ``--verdicts FILE`` says which findings are true:

    "suite/name" = {true = false, why = "the host waits for the event"}

``--sanitizer`` runs the same programs on the GPU here, alone and under compute-sanitizer.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.measure import machine, table
from benchmarks.program_suites import STATUS, Program, draw, find_programs

_TOOLS = ("memcheck", "racecheck", "initcheck")
# Ended: without a check of its own. Failed: its check, or it crashed. Not built: by nvcc itself.
_RESULTS = ("passed", "ended", "found", "refused", "late", "failed", "not built")
_BUILD_SECONDS = 150
_GRACE_SECONDS = 3  # for the findings so far, once the time is up
_MOST_WORDS = 160  # characters


class Watched(msgspec.Struct, frozen=True):
    """What one of compute-sanitizer's tools said."""

    count: int | None  # of errors or hazards; None: it did not end well
    seconds: float
    words: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    program: str
    lines: int
    result: str  # of _RESULTS
    words: str = ""  # the first finding with its place, the call that is refused, the last output
    kinds: dict[str, int] = {}
    passed: bool = False  # by its own check, also where something was found
    seconds: float = 0.0
    launches: int = 0
    on_gpu: str = ""  # a result; empty: it was not run there
    gpu_seconds: float = 0.0
    sanitizer: dict[str, Watched] = {}


class Ended(msgspec.Struct, frozen=True):
    status: int | None  # None: it was ended
    text: str  # of both streams
    seconds: float


def run(command: Sequence[str], folder: Path, limit: float, stdin: str = "") -> Ended:
    """Run a command in a session of its own, all of which ends with it. The simulated program finds
    no GPU, also by the libraries it is linked with."""
    started = time.monotonic()
    hidden = {"CUDA_VISIBLE_DEVICES": ""} if "exec" in command else {}
    with subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **hidden},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        status = None
        try:
            text, _ = process.communicate(stdin, timeout=limit)
            status = process.returncode
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            try:
                text, _ = process.communicate(timeout=_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                text, _ = process.communicate()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return Ended(status, text, time.monotonic() - started)


def simulated(root: Path, program: Program, limit: float) -> Outcome:
    folder, ptxsim = root / program.folder, [sys.executable, "-m", "ptxsim"]
    with tempfile.TemporaryDirectory(prefix="programs-") as scratch:
        built, findings = f"{scratch}/program", Path(scratch) / "findings.json"
        command = [*ptxsim, "nvcc", *program.flags, *program.sources, "-o", built]
        made = run(command, folder, _BUILD_SECONDS)
        if made.status != 0:
            why = _first(r".*\bnot simulated\b.*", made.text)
            words = why or _first(r".*\berror\b.*|.*undefined reference.*", made.text)
            words = words or _last(made.text) or f"no end within {_BUILD_SECONDS} s"
            return _outcome(program, "refused" if why else "not built", words)
        command = [*ptxsim, "exec", "--json", str(findings), built, "--", *program.arguments]
        ended = run(command, folder, limit, program.stdin)
        document = msgspec.json.decode(findings.read_bytes()) if findings.exists() else {}
    return _judged(program, ended, document)


def _judged(program: Program, ended: Ended, document: dict[str, Any]) -> Outcome:
    found = [each for each in document.get("findings", ()) if each["severity"] != "note"]
    missing = [each for each in found if "is not simulated" in each["message"]]
    status = ended.status if ended.status is None else document.get("status", ended.status)
    passed = _passes(program, status, ended.text)
    refusal = _first(r"ptxsim: .*", ended.text) if ended.status == 3 else ""
    if refusal or missing:
        result, words = "refused", refusal or missing[0]["message"]
    elif found:
        place = f"{found[0]['file']}:{found[0]['line']}: " if found[0]["file"] else ""
        result, words = "found", place + found[0]["message"]
    elif ended.status is None:
        result, words = "late", ""
    elif passed:
        result, words = "passed" if program.success else "ended", ""
    else:
        result, words = "failed", f"status {status}: {_last(ended.text)}"
    return _outcome(
        program,
        result,
        words,
        kinds=dict(Counter(each["kind"] for each in found)),
        passed=passed,
        seconds=round(ended.seconds, 2),
        launches=document.get("launches", 0),
    )


def _outcome(program: Program, result: str, words: str, **more: Any) -> Outcome:
    words = " ".join(words.split())[:_MOST_WORDS]
    name, lines = program.full_name, program.lines
    return Outcome(program=name, lines=lines, result=result, words=words, **more)


def _passes(program: Program, status: int | None, text: str) -> bool:
    says = program.success in ("", STATUS) or bool(re.search(program.success, text))
    return status == 0 and says


def on_gpu(root: Path, program: Program, limit: float, outcome: Outcome) -> Outcome:
    """Add what happens on the GPU, alone and under compute-sanitizer."""
    folder = root / program.folder
    with tempfile.TemporaryDirectory(prefix="programs-") as scratch:
        asked = [f"{scratch}/program", *program.arguments]
        command = ["nvcc", "-lineinfo", "-arch=sm_90", *program.flags, *program.sources]
        if run([*command, "-o", asked[0]], folder, _BUILD_SECONDS).status != 0:
            return msgspec.structs.replace(outcome, on_gpu="not built")
        alone = run(asked, folder, limit, program.stdin)
        watched = {}
        for tool in _TOOLS:
            command = ["compute-sanitizer", "--tool", tool, "--print-limit", "1", *asked]
            watched[tool] = _watched(run(command, folder, limit, program.stdin))
    well = _passes(program, alone.status, alone.text)
    result = "late" if alone.status is None else "passed" if well else "failed"
    seconds = round(alone.seconds, 2)
    return msgspec.structs.replace(outcome, on_gpu=result, gpu_seconds=seconds, sanitizer=watched)


def _watched(ended: Ended) -> Watched:
    said = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:error|hazard)", ended.text)
    count = sum(map(int, said)) if said and ended.status is not None else None
    first = r"(?<========= )(?:Error|Warning|Invalid|Uninit|Race|Host API|Program).*"
    return Watched(count, round(ended.seconds, 2), _first(first, ended.text))


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found[0] if found else ""


def _last(text: str) -> str:
    lines = [each for each in text.splitlines() if each.strip() and not each.startswith("note: ")]
    return next(reversed(lines), "")


# --- what comes out


def markdown(outcomes: Sequence[Outcome], verdicts: dict[str, dict[str, Any]]) -> str:
    """The tables: how many of each suite, every program, what is missing, beside the GPU's."""
    heads = ["suite", "programs", *_RESULTS, "passed, ended or truly found"]
    parts = [table(heads, list(_counts(outcomes, verdicts)))]
    rows = [_row(each, verdicts.get(each.program, {})) for each in outcomes]
    parts.append(table(["program", "lines", "result", "what", "s", "true?"], rows))
    if missing := Counter(_call(each.words) for each in outcomes if each.result == "refused"):
        counted = [[call, str(count)] for call, count in missing.most_common()]
        parts.append(table(["refused for", "programs"], counted))
    if beside := [_beside(each) for each in outcomes if each.on_gpu]:
        heads = ["program", "on the GPU", "exec", *_TOOLS, "s: GPU", "exec", *_TOOLS]
        parts.append(table(heads, beside))
    return "\n\n".join(parts)


def _counts(
    outcomes: Sequence[Outcome], verdicts: dict[str, dict[str, Any]]
) -> Iterator[list[str]]:
    ordered = sorted(outcomes, key=_suite)
    groups = [(name, list(group)) for name, group in groupby(ordered, _suite)]
    for name, group in [*groups, ("all", ordered)]:
        counts = Counter(each.result for each in group)
        true = [verdicts.get(each.program, {}).get("true") for each in group]
        truly = sum(one.result == "found" and bool(t) for one, t in zip(group, true, strict=True))
        well = counts["passed"] + counts["ended"] + truly
        yield [name, *map(str, (len(group), *(counts[each] for each in _RESULTS), well))]


def _suite(outcome: Outcome) -> str:
    return outcome.program.partition("/")[0]


def _row(outcome: Outcome, verdict: dict[str, Any]) -> list[str]:
    what = outcome.words
    if outcome.kinds:
        kinds = ", ".join(f"{kind} {count}" for kind, count in outcome.kinds.items())
        what = f"{kinds}{', passed' * outcome.passed}: {what}"
    true = {True: "true", False: "false"}.get(verdict.get("true", "?"), "?")
    said = ": ".join(filter(None, [true, verdict.get("why")])) if outcome.kinds else ""
    what = what.replace("|", "\\|").replace("<", "&lt;")
    cells = [outcome.program, str(outcome.lines), outcome.result, what]
    return [*cells, f"{outcome.seconds:.1f}", said]


def _call(words: str) -> str:
    """The call or instruction for which a program is refused, without its place."""
    ways = r"(\w+) (?:(?:with|of) .*)?is not simulated|(?:instruction|form of) (\S+)"
    named = re.search(ways, words)
    return (named[1] or named[2]) if named else re.sub(r"^ptxsim: |\S+:\d+: ", "", words)[:70]


def _beside(outcome: Outcome) -> list[str]:
    watched = [outcome.sanitizer.get(tool) for tool in _TOOLS]
    counts = ["–" if not each or each.count is None else str(each.count) for each in watched]
    seconds = [outcome.gpu_seconds, outcome.seconds, *(each.seconds for each in watched if each)]
    own = ", ".join(outcome.kinds) or outcome.result
    return [outcome.program, outcome.on_gpu, own, *counts, *(f"{each:.1f}" for each in seconds)]


def _read(path: Path) -> list[tuple[Path, Program]]:
    """The programs of a folder or a manifest, with what their folders are relative to."""
    if path.is_dir():
        return [(path.absolute(), each) for each in find_programs(path)]
    rows = msgspec.toml.decode(path.read_bytes())
    root = (path.parent / rows["root"]).absolute()
    return [(root, each) for each in msgspec.convert(rows["program"], list[Program])]


def _manifest(work: Sequence[tuple[Path, Program]], path: Path) -> str:
    """TOML, whose values are written as JSON's are."""
    lines = [f"root = {json.dumps(os.path.relpath(work[0][0], path.absolute().parent))}"]
    for _, program in work:
        fields = msgspec.to_builtins(program).items()
        lines += ["", "[[program]]", *(f"{key} = {json.dumps(value)}" for key, value in fields)]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("given", type=Path, nargs="+", metavar="FOLDER|MANIFEST|JSON")
    parser.add_argument("--draw", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without", type=Path, action="append", default=[], metavar="MANIFEST")
    parser.add_argument("--manifest", type=Path, metavar="FILE", help="write it, and run nothing")
    parser.add_argument("--first", type=int, metavar="N", help="of the programs only")
    parser.add_argument("--only", default="", metavar="REGEX", help="of the programs' names")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one program")
    parser.add_argument("--sanitizer", action="store_true")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there")
    parser.add_argument("--verdicts", type=Path, metavar="FILE")
    asked = parser.parse_args()
    outcomes: list[Outcome] = []
    work: list[tuple[Path, Program]] = []
    for given in asked.given:
        if given.suffix == ".json":
            outcomes += msgspec.json.decode(given.read_bytes(), type=list[Outcome])
        else:
            work += _read(given)
    without = {each.full_name for path in asked.without for _, each in _read(path)}
    roots = {each.full_name: root for root, each in work if each.full_name not in without}
    programs = [each for _, each in work if each.full_name in roots]
    if asked.draw:
        programs = draw(programs, asked.draw, asked.seed)
    chosen = [each for each in programs if re.search(asked.only, each.full_name)][: asked.first]
    work = [(roots[each.full_name], each) for each in chosen]
    if asked.manifest:
        asked.manifest.write_text(_manifest(work, asked.manifest))
        return 0
    verdicts = msgspec.toml.decode(asked.verdicts.read_bytes()) if asked.verdicts else {}

    def of_one(place: tuple[Path, Program]) -> Outcome:
        outcome = simulated(*place, asked.limit)
        print(f"{outcome.result:9} {outcome.program} {outcome.words}", file=sys.stderr, flush=True)
        return on_gpu(*place, asked.limit, outcome) if asked.sanitizer else outcome

    with ThreadPoolExecutor(asked.jobs) as pool:
        outcomes += pool.map(of_one, work)
    if asked.json:
        asked.json.write_bytes(msgspec.json.format(msgspec.json.encode(outcomes)))
    text = markdown(outcomes, verdicts)
    if asked.markdown:
        asked.markdown.write_text(text + "\n")
    print(machine(), "", text, sep="\n")
    return int(any(verdicts.get(each.program, {}).get("true") is False for each in outcomes))


if __name__ == "__main__":
    sys.exit(main())
