"""Others' CUDA programs, run by ``ptxsim exec``: ``python -m benchmarks.programs FOLDER…``.

Each FOLDER holds suites, a folder each (``benchmarks.program_suites`` finds their programs), or is
a manifest, which ``--manifest FILE`` writes instead of running. ``--draw 150 --seed N`` takes a
random sample. ``ptxsim nvcc`` builds each program, ``ptxsim exec`` runs it within ``--limit``
seconds, ``--jobs`` at once; a Markdown table comes out, and ``--json FILE``, of which
``--markdown FILE`` makes the table again. ``--verdicts FILE`` (TOML) says which findings are true:

    ["suite/name"]
    true = false
    why = "the host waits for the event"

``--sanitizer`` runs the same programs on the GPU here, alone and under compute-sanitizer's memcheck,
racecheck and initcheck.
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
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.measure import machine, table
from benchmarks.program_suites import STATUS, Program, draw, find_programs

_PTXSIM = (sys.executable, "-m", "ptxsim")
_TOOLS = ("memcheck", "racecheck", "initcheck")
_BUILD_SECONDS = 150
_GRACE_SECONDS = 3  # for the findings so far, once the time is up
_MOST_WORDS = 160
# From best to worst. A true finding counts beside a pass.
_RESULTS = {
    "passed": "passed by its own check",
    "ended": "ended well; it has no check",
    "found": "something was found",
    "refused": "refused",
    "late": "no end within the limit",
    "failed": "its own check failed, or it crashed",
    "not built": "nvcc does not build it",
}


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
    output: str
    errors: str
    seconds: float


def run(
    command: Sequence[str | Path],
    folder: Path,
    limit: float,
    stdin: str = "",
    **environment: str,
) -> Ended:
    """Run a command in a session of its own, all of which ends with it."""
    started = time.monotonic()
    with subprocess.Popen(
        [str(each) for each in command],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        status = None
        try:
            output, errors = process.communicate(stdin, timeout=limit)
            status = process.returncode
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            try:
                output, errors = process.communicate(timeout=_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, errors = process.communicate()
        seconds = time.monotonic() - started
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return Ended(status, output, errors, seconds)


def simulated(root: Path, program: Program, limit: float) -> Outcome:
    folder = root / program.folder
    with tempfile.TemporaryDirectory(prefix="programs-") as scratch:
        built, findings = Path(scratch) / "program", Path(scratch) / "findings.json"
        command = [*_PTXSIM, "nvcc", *program.flags, *program.sources, "-o", built]
        made = run(command, folder, _BUILD_SECONDS)
        if made.status != 0:
            why = _first(r"not simulated: .*", made.errors)
            words = why or _first(r".*\berror\b.*|.*undefined reference.*", made.errors)
            result = "refused" if why else "not built"
            return _outcome(program, result, words or _last(made.errors))
        command = [*_PTXSIM, "exec", "--json", findings, built, "--", *program.arguments]
        # The libraries that it may be linked with shall find no GPU.
        ended = run(command, folder, limit, program.stdin, CUDA_VISIBLE_DEVICES="")
        document = msgspec.json.decode(findings.read_bytes()) if findings.exists() else {}
    return _judged(program, ended, document)


def _judged(program: Program, ended: Ended, document: dict[str, Any]) -> Outcome:
    found = [each for each in document.get("findings", ()) if each["severity"] != "note"]
    missing = [each for each in found if "is not simulated" in each["message"]]
    own = ended.status if ended.status is None else document.get("status", ended.status)
    passed = _passes(program, own, ended.output + ended.errors)
    refusal = _first(r"ptxsim: .*", ended.errors) if ended.status == 3 else ""
    if refusal or missing:
        result, words = "refused", refusal or missing[0]["message"]
    elif found:
        first = found[0]
        place = f"{first['file']}:{first['line']}: " if first["file"] else ""
        result, words = "found", place + first["message"]
    elif ended.status is None:
        result, words = "late", ""
    elif passed:
        result, words = "passed" if program.success else "ended", ""
    else:
        result, words = "failed", _last(ended.output + ended.errors)
        words = f"status {own}: {words}"
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
    return Outcome(
        program=program.full_name, lines=program.lines, result=result, words=words, **more
    )


def _passes(program: Program, status: int | None, output: str) -> bool:
    if status != 0:
        return False
    return program.success in ("", STATUS) or bool(re.search(program.success, output))


def on_gpu(root: Path, program: Program, limit: float, outcome: Outcome) -> Outcome:
    """Add what happens on the GPU, alone and under compute-sanitizer."""
    folder = root / program.folder
    with tempfile.TemporaryDirectory(prefix="programs-") as scratch:
        built = Path(scratch) / "program"
        command = ["nvcc", "-lineinfo", "-arch=sm_90", *program.flags, *program.sources]
        if run([*command, "-o", built], folder, _BUILD_SECONDS).status != 0:
            return msgspec.structs.replace(outcome, on_gpu="not built")
        program_s = [built, *program.arguments]
        alone = run(program_s, folder, limit, program.stdin)
        well = _passes(program, alone.status, alone.output + alone.errors)
        watched = {}
        for tool in _TOOLS:
            command = ["compute-sanitizer", "--tool", tool, "--print-limit", "1"]
            ended = run([*command, *map(str, program_s)], folder, limit, program.stdin)
            watched[tool] = _watched(ended)
    result = "late" if alone.status is None else "passed" if well else "failed"
    seconds = round(alone.seconds, 2)
    return msgspec.structs.replace(outcome, on_gpu=result, gpu_seconds=seconds, sanitizer=watched)


def _watched(ended: Ended) -> Watched:
    text = ended.output + ended.errors
    said = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:error|hazard)", text)
    count = sum(map(int, said)) if said and ended.status is not None else None
    first = _first(r"========= (?:Error|Warning|Invalid|Uninit|Race|Program hit).*", text)
    return Watched(count, round(ended.seconds, 2), first[10:] if count else "")


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found[0] if found else ""


def _last(text: str) -> str:
    return next(reversed(text.strip().splitlines()), "")


# --- what comes out


def markdown(outcomes: Sequence[Outcome], verdicts: dict[str, dict[str, Any]]) -> str:
    """The tables: how many of each suite, and every program."""
    suites = list(_counts(outcomes, verdicts))
    heads = ["suite", "programs", *_RESULTS, "passed, or truly found"]
    rows = [_row(each, verdicts.get(each.program, {})) for each in outcomes]
    parts = [
        table(heads, suites),
        table(["program", "lines", "result", "what", "s", "true?"], rows),
    ]
    missing = Counter(_call(each.words) for each in outcomes if each.result == "refused")
    if missing:
        counted = [[call, str(count)] for call, count in missing.most_common()]
        parts.append(table(["refused for", "programs"], counted))
    beside = [each for each in outcomes if each.on_gpu]
    if beside:
        heads = ["program", "on the GPU", "exec", *_TOOLS, "s: GPU", "exec", *_TOOLS]
        parts.append(table(heads, [_beside(each) for each in beside]))
    return "\n\n".join(parts)


def _counts(
    outcomes: Sequence[Outcome], verdicts: dict[str, dict[str, Any]]
) -> Iterator[list[str]]:
    by_suite = sorted(outcomes, key=lambda each: each.program)
    groups = [(name, list(group)) for name, group in groupby(by_suite, _suite)]
    for name, group in [*groups, ("all", by_suite)]:
        counts = Counter(each.result for each in group)
        well = sum(_ends_well(each, verdicts) for each in group)
        yield [name, *map(str, (len(group), *(counts[each] for each in _RESULTS), well))]


def _ends_well(outcome: Outcome, verdicts: dict[str, dict[str, Any]]) -> bool:
    true = verdicts.get(outcome.program, {}).get("true")
    return outcome.result in ("passed", "ended") or (outcome.result == "found" and true is True)


def _suite(outcome: Outcome) -> str:
    return outcome.program.partition("/")[0]


def _row(outcome: Outcome, verdict: dict[str, Any]) -> list[str]:
    kinds = ", ".join(f"{kind} {count}" for kind, count in outcome.kinds.items())
    passed = ", passed" if outcome.result == "found" and outcome.passed else ""
    what = f"{kinds}{passed}: {outcome.words}" if outcome.result == "found" else outcome.words
    true = {True: "true", False: "false"}.get(verdict.get("true"), "?" if kinds else "")
    said = ": ".join(filter(None, [true, verdict.get("why", "")]))
    what = what.replace("|", "\\|")
    cells = [outcome.program, str(outcome.lines), outcome.result, what]
    return [*cells, f"{outcome.seconds:.1f}", said]


def _call(words: str) -> str:
    """The call or instruction for which a program is refused, without its place."""
    named = re.search(r"not simulated: (\w+)|(\w+) .*is not simulated", words)
    return (named[1] or named[2]) if named else re.sub(r"^ptxsim: |\S+:\d+: ", "", words)[:70]


def _beside(outcome: Outcome) -> list[str]:
    counts = [outcome.sanitizer.get(tool) for tool in _TOOLS]
    found = ["–" if each is None or each.count is None else str(each.count) for each in counts]
    seconds = [f"{each.seconds:.1f}" if each else "" for each in counts]
    own = ", ".join(outcome.kinds) or outcome.result
    own_s = [f"{outcome.gpu_seconds:.1f}", f"{outcome.seconds:.1f}"]
    return [outcome.program, outcome.on_gpu, own, *found, *own_s, *seconds]


def _read(path: Path) -> tuple[Path, list[Program]]:
    """The programs of a folder or a manifest, and what their folders are relative to."""
    if path.is_dir():
        return path, find_programs(path)
    rows = msgspec.toml.decode(path.read_bytes())
    return path.parent / rows["root"], msgspec.convert(rows["program"], list[Program])


def _manifest(work: Sequence[tuple[Path, Program]], path: Path) -> str:
    """TOML, whose values are written as JSON's are."""
    root = os.path.relpath(work[0][0], path.parent.absolute()) if work else "."
    lines = [f"root = {json.dumps(root)}"]
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
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there, too")
    parser.add_argument("--verdicts", type=Path, metavar="FILE")
    asked = parser.parse_args()
    outcomes: list[Outcome] = []
    work: list[tuple[Path, Program]] = []
    for given in asked.given:
        if given.suffix == ".json":
            outcomes += msgspec.json.decode(given.read_bytes(), type=list[Outcome])
        else:
            root, programs = _read(given)
            work += [(root.absolute(), each) for each in programs]
    left_out = {each.full_name for path in asked.without for each in _read(path)[1]}
    work = [each for each in work if each[1].full_name not in left_out]
    if asked.draw:
        roots = {each.full_name: root for root, each in work}
        drawn = draw([each for _, each in work], asked.draw, asked.seed)
        work = [(roots[each.full_name], each) for each in drawn]
    work = [each for each in work if re.search(asked.only, each[1].full_name)][: asked.first]
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
