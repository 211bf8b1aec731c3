"""Fuzzing the simulator under ASan and UBSan; ``python -m tests.fuzz`` does more."""

from __future__ import annotations

import msgspec
import pytest

from ptxsim.records import Plan
from tests.fuzz.campaign import repeat, run_campaign
from tests.fuzz.cases import SEEDS, make_case


def test_the_seeds_run_as_they_are():
    count = len(list(SEEDS.glob("*.ptx")))
    ends = {make_case(0, number).name: repeat(0, number) for number in range(count)}
    bad = {name: end for name, end in ends.items() if end.startswith(("refused", "no plan"))}
    assert count >= 20 and not bad, bad


def test_a_case_follows_from_its_number():
    cases = [make_case(7, number) for number in range(100, 140)]
    assert cases == [make_case(7, number) for number in range(100, 140)]
    assert len({(case.name, case.ptx, str(case.plan)) for case in cases}) > 35
    changed = [c for c in cases if c.plan != msgspec.json.decode(c_plan(c.name))]
    assert 2 < len(changed) < 30


def c_plan(name: str) -> bytes:
    text = (SEEDS / f"{name}.json").read_bytes()
    msgspec.json.decode(text, type=Plan)
    return text


@pytest.mark.slow
@pytest.mark.parametrize("minutes", [0.1, pytest.param(5, marks=pytest.mark.nightly)])
def test_fuzzing(minutes: float):
    campaign = run_campaign(seed=12, minutes=minutes)
    assert campaign.cases > 20 * minutes, campaign.summary()
    assert campaign.failures == {}, campaign.summary()
