"""Code that nvcc -G makes: local arrays lie apart, variables without a value are seen."""

import random
import re

import msgspec
import numpy as np
import pytest

from harness import compiled, engine, kernels, sentence, table
from ptxsim import Module, Output
from ptxsim.frontend.debug_info import DebugSection, local_variables
from ptxsim.frontend.reader import parse
from ptxsim.outcome import SimOutcome
from ptxsim.report import Report
from ptxsim.second_build import has_same_kernels, hidden_mistakes

SOURCE = kernels("local_arrays.cu")


def unoptimised() -> str:
    return compiled(SOURCE, name="local_arrays", flags="-G")[0]


def ran(ptx: str, kernel: str, n: int) -> Report:
    x, y = np.ones(64, np.float32), np.empty(32, np.float32)
    return Module(ptx, engine=engine()).kernel(kernel)[1, 32](x, Output(y), n)


@pytest.mark.parametrize(("kernel", "n", "kind", "says"), table("local_arrays.txt"))
def test_unoptimised_code_shows_its_mistakes(kernel: str, n: str, kind: str, says: str) -> None:
    report = ran(unoptimised(), kernel, int(n))
    assert {each.kind.value for each in report.findings} == ({kind} if kind else set()), report
    assert says in str(report)
    assert set(hidden_mistakes(report)) == set(report.findings)


def test_what_nvcc_optimises_away_is_not_seen_in_its_own_code() -> None:
    ptx = compiled(SOURCE, name="local_arrays")[0]
    assert ran(ptx, "between", 3).clean and ran(ptx, "stage", 1).clean


def test_only_overrun_arrays_and_missing_values_count_of_a_run_that_ended() -> None:
    report = ran(unoptimised(), "between", 3)
    found = report.findings[0]
    assert found.access
    elsewhere = msgspec.structs.replace(found.access, space="global")
    other = msgspec.structs.replace(found, access=elsewhere)

    def outcome(stopped: str | None = None) -> SimOutcome:
        return SimOutcome((found, other), (), stopped, 0.0, "")

    assert hidden_mistakes(outcome()) == (found,)
    assert hidden_mistakes(outcome("time")) == hidden_mistakes(outcome("deadlock")) == ()


def test_builds_with_other_parameters_are_not_of_one_source() -> None:
    first, second = (
        Module(ptx, engine=engine()).declared
        for ptx in (compiled(SOURCE, name="local_arrays")[0], unoptimised())
    )
    assert has_same_kernels(first, second)
    fewer = dict(list(second.entries.items())[1:])
    assert not has_same_kernels(first, msgspec.structs.replace(second, entries=fewer))
    name, entry = next(iter(second.entries.items()))
    shorter = second.entries | {name: msgspec.structs.replace(entry, params=entry.params[1:])}
    assert not has_same_kernels(first, msgspec.structs.replace(second, entries=shorter))


def test_debug_information_says_where_variables_lie_or_nothing(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    sections = parse(unoptimised(), tmp_path_factory.getbasetemp()).sections
    found = {each.name: each for known in local_variables(sections).values() for each in known}
    assert (found["c"].size, found["c"].element) == (40, 8)
    assert (found["s"].size, found["s"].element) == (24, 24)
    chance = random.Random(1)
    for _ in range(300):
        damaged = {}
        for name, section in sections.items():
            data = bytearray(section.data)
            for _ in range(chance.randrange(4)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            damaged[name] = DebugSection(data[: chance.randrange(len(data)) + 1], section.symbols)
        assert isinstance(local_variables(damaged), dict)


def test_damaged_debug_information_only_costs_names() -> None:
    damaged = re.sub(r"(\.section\s+\.debug_abbrev\s*\{\s*)\.b8 1", r"\1.b8 99", unoptimised())
    assert damaged != unoptimised()
    report = ran(damaged, "halves", 12)
    assert "past the end of the local arrays of halves, which have 24 bytes" in str(report)


def test_a_long_name_is_shortened_where_it_is_shown() -> None:
    name = "v" * 3000
    source = (
        "__global__ void k(const float* x, float* y, int n) { float NAME[3]; for (int i = 0; i < n;"
        " ++i) NAME[i] = x[i]; y[threadIdx.x] = NAME[n - 1]; }"
    )
    ptx, _ = compiled(f'extern "C" {source.replace("NAME", name)}', name="long", flags="-G")
    said = {sentence(each) for each in ran(ptx, "k", 4).findings}
    assert all("vvv…[3], just past the end of the 12-byte array vvv" in each for each in said)
    assert said and max(map(len, said)) < 400
