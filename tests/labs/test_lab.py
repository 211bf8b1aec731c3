"""Every mistake in a lab file is one line that names the file, the field and what was found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.base.errors import LabError
from grader.base.language import language
from grader.labs.lab import DEFAULT_LAB, load_lab
from ptxsim.records import Size
from tests.support.catalogues import assert_chinese
from tests.support.files import beside, table

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


SIZE = "expected 3 integers [M, N, K] from 1 to 65536, got"
MISTAKES = table(__file__, "mistakes.txt")


@pytest.mark.parametrize(("name", "old", "new", "words"), MISTAKES)
def test_a_mistake_is_one_line_naming_file_and_field(
    name: str, old: str, new: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("labs/x.yaml")
    path.parent.mkdir()
    old, new = (each.encode().decode("unicode_escape") for each in (old, new))
    assert old in ("+", "*", "") or old in SMALL
    path.write_text({"+": SMALL + new, "*": new}.get(old, SMALL.replace(old, new)))
    with pytest.raises(LabError) as caught:
        load_lab(path)
    message = str(caught.value)
    assert message.startswith("labs/x.yaml:")
    assert words.replace("$SIZE", SIZE) in message
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
