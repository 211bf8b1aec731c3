"""Every mistake in a lab file is one line that names the file, the field and what was found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.base.errors import LabError
from grader.base.language import language
from grader.labs.lab import DEFAULT_LAB, load_lab
from ptxsim.records import Size
from tests.support.chinese import assert_chinese
from tests.support.files import beside

SMALL = beside(__file__, "small.yaml")


def test_the_default_lab_covers_what_the_simulator_should_try() -> None:
    lab = load_lab()
    sizes = [case.size for case in lab.cpu]
    assert len(sizes) >= 8
    assert Size.of(m=1, n=1, k=1) in sizes
    assert any(s["m"] % 64 == s["n"] % 64 == s["k"] % 32 == 0 for s in sizes)
    assert any(all(extent % 2 for extent in s.extents) for s in sizes)
    assert any(len(set(s.extents)) == 3 for s in sizes)
    assert max(max(s.extents) for s in sizes) <= 257
    assert lab.architectures[0] == "sm_80"
    assert len(lab.sha256) == 64


def test_a_small_lab_gets_its_defaults_and_case_ids(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(SMALL)
    lab = load_lab(path)
    assert [c.id for c in lab.cpu] == ["cpu-0", "cpu-1"]
    assert [c.id for c in lab.performance] == ["performance-0", "wide"]
    assert lab.performance[1].weight == 2
    assert lab.performance[1].size == Size.of(m=128, n=64, k=64)
    assert lab.multiple_of == 1
    assert lab.limits.memory_mb > 0


def test_a_lab_may_extend_one_that_ships(tmp_path: Path) -> None:
    base = load_lab()
    (tmp_path / "lab.yaml").write_text("id: mine\nextends: sgemm\nlimits: {record_s: 7}\n")
    lab = load_lab(tmp_path / "lab.yaml")
    assert (lab.id, lab.cpu, lab.performance) == ("mine", base.cpu, base.performance)
    assert (lab.limits.record_s, lab.limits.total_s) == (7, 180)
    assert lab.sha256 != base.sha256


def test_an_architecture_may_have_a_suffix(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(SMALL + "architectures: [90a, 80]\n")
    lab = load_lab(path)
    assert lab.architectures == ("sm_90a", "sm_80")
    assert [lab.arch_on(gpu) for gpu in ("sm_90", "sm_80", "sm_75")] == ["sm_90a", "sm_80", "sm_75"]


def changed(old: str, new: str) -> str:
    assert old in SMALL
    return SMALL.replace(old, new)


SIZE = "expected 3 integers [M, N, K] from 1 to 65536, got"
MISTAKES = {
    "zero": (changed("[128, 64, 64]", "[0, 64, 64]"), f"performance[1].mnk: {SIZE} [0, 64, 64]"),
    "negative": (changed("[2, 3, 5]", "[2, -3, 5]"), f"cpu[1]: {SIZE} [2, -3, 5]"),
    "too few": (changed("[8, 16, 24]", "[8, 16]"), f"correctness[1]: {SIZE} [8, 16]"),
    "too many": (changed("[8, 16, 24]", "[1, 2, 3, 4]"), f"correctness[1]: {SIZE} [1, 2, 3, 4]"),
    "fraction": (changed("[2, 3, 5]", "[2, 3.5, 5]"), f"cpu[1]: {SIZE} [2, 3.5, 5]"),
    "boolean": (changed("[2, 3, 5]", "[2, true, 5]"), f"cpu[1]: {SIZE} [2, True, 5]"),
    "no size": (changed("[2, 3, 5]", "many"), f"cpu[1]: {SIZE} 'many'"),
    "absurd": (changed("[2, 3, 5]", "[2, 3, 99999]"), f"cpu[1]: {SIZE} [2, 3, 99999]"),
    "unknown key": (changed("cpu:", "cpus:"), "cpus: unknown key; did you mean 'cpu'?"),
    "inner key": (changed("weight: 2", "wait: 2"), "performance[1].wait: unknown key; did you"),
    "odd key": (changed("policy", "zzz"), "scoring.zzz: unknown key; known here: policy, runs"),
    "number as key": (SMALL + "7: 1\n", ":9:1: not valid YAML: expected a field name, got"),
    "missing": (changed("id: tiny\n", ""), "id: missing; expected letters"),
    "empty list": (changed("[[1, 1, 1], [2, 3, 5]]", "[]"), "cpu: expected a list of sizes"),
    "weight": (changed("weight: 2", "weight: 0"), "performance[1].weight: expected a number > 0"),
    "infinity": (changed("weight: 2", "weight: .inf"), "performance[1].weight: expected a number"),
    "nan": (changed("60", ".nan"), "limits.compile_s: expected a number > 0 (seconds), got nan"),
    "text": (changed("60", "soon"), "limits.compile_s: expected a number > 0 (seconds), got 'soo"),
    "policy": (
        changed("policy: oj", "policy: best"),
        "scoring.policy: expected 'oj' or 'linear' or 'log' or 'curve', got",
    ),
    "no checkpoints": (changed(": oj", ": linear"), "checkpoints: the policy 'linear' needs at le"),
    "checkpoints fall": (
        changed(": oj", ": log, checkpoints: [{ratio: 1, score: 9}, {ratio: 1, score: 10}]"),
        "scoring.checkpoints[1].ratio: expected more than",
    ),
    "useless checkpoints": (
        changed("policy: oj", "policy: oj, checkpoints: [{ratio: 1, score: 9}]"),
        "scoring.checkpoints: the policy 'oj' has none",
    ),
    "layout": (SMALL + "layout: {C: diagonal}\n", "layout.C: expected 'row' or 'col', got"),
    "host calls": (
        SMALL + "rules: {host_calls: ignored}\n",
        "rules.host_calls: expected 'charged' or 'free', got 'ignored'",
    ),
    "section": (SMALL + "rules: 3\n", "rules: expected a mapping with tensor_cores, findings"),
    "kernels": (SMALL + "rules: {kernels: two}\n", "rules.kernels: expected 'any' or 'one', got"),
    "architecture": (SMALL + "architectures: [8]\n", "architectures[0]: expected a compute"),
    "suffix": (SMALL + "architectures: [80, 80a]\n", "architectures[1]: expected a compute"),
    "same size": (changed("[2, 3, 5]", "[1, 1, 1]"), "cpu[1]: [1, 1, 1] is already cpu[0]"),
    "same id": (
        changed("id: wide", "id: performance-0"),
        "performance[1].id: 'performance-0' is taken by performance[0]",
    ),
    "another's id": (changed("id: wide", "id: cpu-1"), "performance[1].id: 'cpu-1' is the id of"),
    "id with a path": (changed("tiny", "../tiny"), "id: expected letters, digits"),
    "no multiple": (
        SMALL + "multiple_of: 8\n",
        "correctness[0]: expected multiples of multiple_of=8, got [1, 1, 1]",
    ),
    "duplicate key": (SMALL + "id: again\n", ":9:1: not valid YAML: key 'id' appears twice"),
    "inner duplicate": (changed("weight: 2", "weight: 2, weight: 3"), "'weight' appears twice"),
    "syntax": ("id: [", ":1:6: not valid YAML: expected the node content"),
    "control character": ("id: \x01", "not valid YAML: unacceptable character"),
    "python tag": ("id: !!python/name:os.system", "not valid YAML: could not determine"),
    "empty": ("", "the file is empty; start from"),
    "only comments": ("# nothing\n", "the file is empty"),
    "list": ("- 1\n", "expected fields such as 'id: sgemm', got [1]"),
    "no such base": ("id: tiny\nextends: sgem\n", "extends: expected one of hgemm, ladder"),
    "no id beside a base": ("extends: sgemm\n", "id: missing; expected letters"),
    "text only": ("sgemm", "expected fields such as 'id: sgemm', got 'sgemm'"),
}


@pytest.mark.parametrize(("text", "words"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_one_line_naming_file_and_field(
    text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("labs/x.yaml")
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(LabError) as caught:
        load_lab(path)
    message = str(caught.value)
    assert message.startswith("labs/x.yaml:")
    assert words in message
    assert "\n" not in message
    assert len(message) < 250
    # The words of the library, and names of fields, have no translation.
    if not re.search("not valid YAML|known here|a mapping with|extends", message):
        assert_chinese(language("zh_CN")(caught.value.message))


def test_unknown_advice_is_found_when_the_lab_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from grader.problems.gemm import gemm\n"
        "class Mine(gemm.Gemm):\n    advice = ('no-tile', 'bank-conflict')\n"
    )
    (tmp_path / "lab.yaml").write_text(f"problem: mine.py\n{SMALL}")
    with pytest.raises(LabError) as caught:
        load_lab(tmp_path / "lab.yaml")
    assert str(caught.value) == (
        f"{tmp_path}/lab.yaml: Mine.advice: there is no advice 'bank-conflict'; "
        "did you mean 'bank-conflicts'?"
    )


def test_a_missing_or_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"none\.yaml: no such lab file"):
        load_lab(tmp_path / "none.yaml")
    with pytest.raises(LabError, match="cannot be read: Is a directory"):
        load_lab(tmp_path)
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"id: \xff\xfe\x00")
    with pytest.raises(LabError, match="not valid YAML"):
        load_lab(binary)


@pytest.mark.parametrize("path", sorted(DEFAULT_LAB.parent.glob("*.yaml")), ids=lambda p: p.stem)
def test_the_labs_that_ship_are_good(path: Path) -> None:
    lab = load_lab(path)
    assert lab.cpu
    assert lab.performance
