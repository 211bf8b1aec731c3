"""Fixtures and cheats that compile, recorded and simulated under ASan and UBSan: all in nightly
runs, every twelfth with ``--all``.

Two small sizes, few steps of each launch: what is looked for are faults of our C++. Most of a first
run goes into compiling the engine and the submissions; the cache keeps both.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from grader.base.errors import MachineError, Rejected
from grader.base.native import Native
from grader.base.records import Verdict
from grader.build.building import Build
from grader.judge.program import compile_for
from grader.labs.shape import Limits
from grader.labs.submission import Submission, load_submission
from grader.record import recording
from grader.run.simulator.device import engine_library
from ptxsim import Declarations, RefusedProgram, answer_of
from ptxsim.frontend.interface import interface
from ptxsim.frontend.module import read_module
from ptxsim.plan import Launch, Plan, Record, Size
from tests.fuzz.campaign import sanitised_environment
from tests.fuzz.worker import SANITISED
from tests.support.bench import bench
from tests.support.corpus import cheats, filled, fixtures
from tests.support.places import ROOT
from tests.support.product import GEMM, MAIN
from tests.whole.sanitised import sanitised_model

pytestmark = pytest.mark.slow

SIZES = (Size.of(m=9, n=17, k=33), Size.of(m=32, n=32, k=16))
OPTIONS = Path(__file__).with_name("sanitisers.cpp")  # what the environment would say
RECORDER_FLAGS = (
    *("-g1", "-fno-omit-frame-pointer"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    "-fno-sanitize=vptr",  # it looks at memory through a pipe, which a child cannot have
)
RECORD_S = 1
# The shadow of ASan takes 16 TiB of addresses.
MEMORY_MB = 1 << 25
# There is more memory to take; and CUTLASS's host code, or to go through a whole stack, may take
# longer than RECORD_S. Whoever reads the recorder's whole stack meets what lies between variables.
UNLIKE = {
    "cheats-reads_its_command_line",
    "cheats-takes_all_memory",
    "broken-host_stack_overflow",
    "broken-calls_cutlass",
    "cheats-hides_cutlass_in_its_kernel",
}
PROCESSES = 2


class Made(Record):
    name: str
    submission: Submission
    build: Build
    declared: Declarations
    recorded: tuple[Plan | Rejected, ...]


def folders(place: Path) -> Iterator[tuple[Path, str]]:
    """Of all that compiles, and what it is compiled for. Cheats get the same text in every run, so
    that the cache serves."""
    for each in (*fixtures(), *cheats()):
        if each.cpu.verdict is not Verdict.CE:
            folder = place / f"{each.folder.parent.name}-{each.folder.name}"
            yield filled(each, folder, "/nowhere"), each.architecture


def made(where: tuple[Path, str]) -> Made | None:
    """None for what does not compile."""
    folder, arch = where
    submission, shared = load_submission(folder, MAIN), bench()
    try:
        build = compile_for(submission, shared, arch)
        declared = interface(read_module(build.ptx.read_text(), folder))
    except (Rejected, RefusedProgram):
        return None
    plans = record(submission, build, declared, shared.lab.limits.memory_mb)
    return Made(
        name=folder.name, submission=submission, build=build, declared=declared, recorded=plans
    )


def record(
    submission: Submission, build: Build, declared: Declarations, memory_mb: int
) -> tuple[Plan | Rejected, ...]:
    """() where a busy machine lacks the time that the host code would waste."""
    shared = bench()
    try:
        return recording.record_plans(
            build,
            submission,
            GEMM,
            SIZES,
            shared.toolchain,
            shared.sandbox,
            declared=declared,
            limits=Limits(record_s=RECORD_S, memory_mb=memory_mb),
        )
    except MachineError as failure:
        if "too busy" not in str(failure):
            raise
        return ()


@pytest.fixture(scope="module", params=[12, pytest.param(1, marks=pytest.mark.nightly)])
def corpus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Made]:
    place = tmp_path_factory.mktemp("corpus")
    bench()  # once: msgspec must not look at a type in two threads at a time
    with ThreadPoolExecutor(PROCESSES) as pool:
        found = [each for each in pool.map(made, list(folders(place))[:: request.param]) if each]
    assert len(found) > 200 / request.param
    return found


def simulate(folder: Path) -> str:
    """What a sanitiser says, after the name of the submission it stopped at; "" for nothing."""
    command = [sys.executable, "-m", "tests.whole.sanitised", str(folder)]
    done = answer_of(command, cwd=ROOT, env=sanitised_environment())
    if done.returncode == 0:
        return ""
    start = max(done.stderr.find("ERROR: AddressSanitizer"), 0)
    return f"{done.stdout[-200:]}\n{done.stderr[start : start + 4000]}"


def test_the_engine_and_the_issue_model(corpus: list[Made], tmp_path: Path) -> None:
    engine_library(SANITISED).compiled()
    sanitised_model().compiled()
    recorded = sum(any(isinstance(one, Plan) for one in each.recorded) for each in corpus)
    assert recorded > len(corpus) / 2
    parts = [tmp_path / str(number) for number in range(PROCESSES)]
    for part in parts:
        part.mkdir()
    for at, each in enumerate(corpus):
        target = parts[at % PROCESSES] / each.name
        plans = [plan for plan in each.recorded if isinstance(plan, Plan)]
        target.with_suffix(".json").write_bytes(msgspec.json.encode(plans))
        target.with_suffix(".ptx").write_bytes(each.build.ptx.read_bytes())
    with ThreadPoolExecutor(PROCESSES) as pool:
        said = list(pool.map(simulate, parts))
    assert said == [""] * PROCESSES, "\n".join(said)


def test_the_recorder(corpus: list[Made], monkeypatch: pytest.MonkeyPatch) -> None:
    """It records what the plain one does: a sanitiser's report would end the process first."""
    plain = recording.recorder_program(bench().toolchain)
    sanitised = Native(
        name="recorder",
        sources=(*plain.sources, OPTIONS),
        shared=False,
        flags=(*plain.flags, *RECORDER_FLAGS),
    )
    monkeypatch.setattr(recording, "recorder_program", lambda _: sanitised)
    with ThreadPoolExecutor(PROCESSES) as pool:
        again = pool.map(
            lambda each: record(each.submission, each.build, each.declared, MEMORY_MB), corpus
        )
        differing = {
            each.name: (each.recorded, outcomes)
            for each, outcomes in zip(corpus, again, strict=True)
            if each.recorded and outcomes
            if list(map(comparable, each.recorded)) != list(map(comparable, outcomes))
        }
    assert set(differing) <= UNLIKE, differing


def comparable(outcome: Plan | Rejected) -> str:
    """Without the values of parameters: addresses in host memory differ from run to run, and so do
    the bytes that pad a structure, which make one call look unlike the next."""
    if isinstance(outcome, Rejected):
        return str(outcome)
    plain = (
        msgspec.structs.replace(each, params=b"", pointers=()) if isinstance(each, Launch) else each
        for each in outcome.operations
    )
    call = msgspec.structs.replace(outcome, operations=tuple(plain), setup=(), calls_differ="")
    return str(call)
