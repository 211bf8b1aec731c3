"""Lab files: mistakes in one line that names file and field, hidden sizes, curves, examples."""

import hashlib
import hmac
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from grader.base.errors import LabError
from grader.base.language import language
from grader.labs.lab import DEFAULT_LAB, Lab, load_lab, revealed
from grader.results.ladders import shipped_ladders
from ptxsim.plan import Size
from tests.support.catalogues import assert_chinese
from tests.support.files import beside, table
from tests.support.places import ROOT

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


def test_switches_withhold_at_all_or_until_the_grace_is_over(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(SMALL)
    plain = load_lab(path)
    assert plain.withheld() == {}
    due = "time: {due: '2026-03-31T23:59+08:00', grace_minutes: 10}\n"
    path.write_text(SMALL + "advice: hide\nrungs: after-due\nanswers: show\n" + due)
    lab = load_lab(path)
    shown = datetime.fromisoformat("2026-04-01T00:09+08:00")
    before = {"advice": None, "rungs": "2026-04-01T00:09+08:00"}
    assert lab.withheld(shown - timedelta(seconds=1)) == before
    assert lab.withheld(shown) == {"advice": None}
    assert revealed(lab).withheld(shown - timedelta(days=9)) == {}
    # No score depends on them: what is shown later is the same lab.
    path.write_text(SMALL + "advice: show\n" + due)
    assert load_lab(path).sha256 == lab.sha256


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
    # The words of the library, and names of fields, have no translation.
    refused(path, words.replace("$SIZE", SIZE), "not valid YAML|known here|a mapping with|extends")


def refused(file: Path, words: str, untranslated: str = "(?!)") -> None:
    """In one line that begins with the file, which is in Chinese, too, but for some words."""
    with pytest.raises(LabError) as caught:
        load_lab(file)
    message = str(caught.value)
    assert message.startswith(f"{file}:")
    assert words in message
    assert "\n" not in message
    assert len(message.removeprefix(str(file))) < 250
    if not re.search(untranslated, message):
        assert_chinese(language("zh_CN")(caught.value.message))


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
    assert lab.performance or lab.program


# --- examples of the documents


BASE = """\
id: example
correctness: [[1, 1, 1]]
performance: [{mnk: [8192, 8192, 8192]}]
cpu: [[1, 1, 1], [33, 17, 20]]
"""
PAGES = ("lab-file.md", "instructor.md")
EXAMPLES = [
    (page, found[1])
    for page in PAGES
    for found in re.finditer(r"```yaml\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    if "labs:" not in found[1]  # a term's
]


def test_there_are_examples_of_every_rule() -> None:
    begun = [text.split(":")[0] for _, text in EXAMPLES]
    assert begun.count("scoring") >= 3 and begun.count("time") >= 2 and "groups" in begun


@pytest.mark.parametrize(("page", "text"), EXAMPLES)
def test_an_example_loads(tmp_path: Path, page: str, text: str) -> None:
    file = tmp_path / "lab.yaml"
    alone = "performance:\n" in text or "kind: program\n" in text
    whole = text if alone and text.startswith("id:") else BASE + text
    file.write_text(whole)
    (tmp_path / "hidden.seed").write_text("sixteen bytes and more")
    lab = load_lab(file)
    if lab.scoring.rung:
        names = {step.rung.name for each in shipped_ladders() for step in each.steps}
        assert lab.scoring.rung in names
    if lab.hidden:
        assert lab.hidden.known


def test_the_shipped_curve_is_the_one_in_the_documents(tmp_path: Path) -> None:
    shipped = load_lab(ROOT / "grader" / "labs" / "sgemm-curve.yaml").scoring
    (tmp_path / "lab.yaml").write_text(BASE + EXAMPLES[0][1])
    assert load_lab(tmp_path / "lab.yaml").scoring == shipped


# --- hidden sizes


SEALED = beside(__file__, "sealed.yaml")
SEED = "a secret of enough bytes"


def load_sealed(place: Path, seed: str | None = SEED, text: str = SEALED) -> Lab:
    (place / "lab.yaml").write_text(text)
    if seed is not None:
        (place / "hidden.seed").write_text(seed)
    return load_lab(place / "lab.yaml")


def sizes(lab: Lab) -> list[tuple[int, ...]]:
    assert lab.hidden is not None
    every = (*lab.hidden.correctness, *lab.hidden.performance, *lab.hidden.cpu)
    return [case.size.extents for case in every]


def test_the_same_secret_draws_the_same_sizes(tmp_path: Path) -> None:
    lab, again = load_sealed(tmp_path), load_sealed(tmp_path, f"{SEED}\n")
    assert lab.hidden is not None
    assert sizes(lab) == sizes(again)
    assert lab.sha256 == again.sha256
    counts = map(len, (lab.hidden.correctness, lab.hidden.performance, lab.hidden.cpu))
    assert list(counts) == [4, 2, 4]
    assert len(set(sizes(lab))) == 10
    for m, n, k in (case.size.extents for case in lab.hidden.performance):
        assert 256 <= m <= 4096 and 256 <= n <= 4096 and 64 <= k <= 512
        assert m % 64 == n % 64 == k % 64 == 0
    assert all(case.size["k"] == 8 for case in lab.hidden.cpu[:3])
    assert lab.timed == (*lab.performance, *lab.hidden.performance)


def test_an_extent_is_an_hmac_of_its_place(tmp_path: Path) -> None:
    """What documents say of it: an old class's sizes can be computed again."""
    digest = hmac.new(SEED.encode(), b"cpu/0/0/0/m", hashlib.sha256).digest()
    expected = 40 + int.from_bytes(digest, "big") % 60
    lab = load_sealed(tmp_path)
    assert lab.hidden is not None
    assert lab.hidden.cpu[0].size["m"] == expected


def test_another_secret_draws_others_and_is_another_lab(tmp_path: Path) -> None:
    lab, other = load_sealed(tmp_path), load_sealed(tmp_path, "another secret of enough bytes")
    assert set(sizes(lab)).isdisjoint(sizes(other))
    assert lab.sha256 != other.sha256


def test_without_the_secret_the_public_sizes_remain(tmp_path: Path) -> None:
    lab = load_sealed(tmp_path, seed=None)
    assert lab.hidden is not None and not lab.hidden.known
    assert sizes(lab) == []
    assert lab.timed == lab.performance
    assert lab.sha256 != load_sealed(tmp_path).sha256
    assert [case.id for case in revealed(load_sealed(tmp_path)).cpu][:2] == [
        "cpu-0",
        "hidden-cpu-0",
    ]


def test_hidden_sizes_are_never_public_ones(tmp_path: Path) -> None:
    narrow = SEALED.replace("[[1, 9], 7, [1, 9]]", "[8, 8, [7, 8]]").replace(", count: 3", "")
    for number in range(8):
        lab = load_sealed(tmp_path, f"secret number {number} of eight", narrow)
        assert lab.hidden is not None
        assert lab.hidden.cpu[1].size.extents == (8, 8, 7)


@pytest.mark.parametrize(("old", "new", "words"), table(__file__, "hidden_mistakes.txt"))
def test_a_mistake_in_hidden_sizes_is_one_line(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    old = old.encode().decode("unicode_escape")
    assert old in SEALED
    (tmp_path / "hidden.seed").write_text(SEED)
    (tmp_path / "lab.yaml").write_text(SEALED.replace(old, new, 1))
    refused(tmp_path / "lab.yaml", words)


def test_a_short_secret_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"hidden\.seed: a seed has 16 to 4096 bytes, this file 5"):
        load_sealed(tmp_path, "short")


# --- curves


BARE = beside(__file__, "base.yaml")
CURVE = beside(__file__, "curve.yaml")
TIMES = beside(__file__, "times.yaml")
GROUPS = beside(__file__, "groups.yaml")
RUNG = CURVE.replace("measure: baseline", "measure: rung\n  rung: 16_float4")
MODEL = CURVE.replace("measure: baseline", "measure: model\n  gpu: A100")
ROOFLINE = CURVE.replace("measure: baseline", "measure: roofline")
CURVE_MISTAKES = table(__file__, "curve_mistakes.txt")


@pytest.mark.parametrize("text", [CURVE, TIMES, RUNG])
def test_a_whole_one_loads(tmp_path: Path, text: str) -> None:
    (tmp_path / "lab.yaml").write_text(BARE + text)
    assert len(load_lab(tmp_path / "lab.yaml").scoring.pieces) == 2


@pytest.mark.parametrize(("name", "old", "new", "words"), CURVE_MISTAKES)
def test_a_mistake_in_a_curve_is_one_line(
    tmp_path: Path, name: str, old: str, new: str, words: str
) -> None:
    text = {"curve": CURVE, "times": TIMES, "rung": RUNG, "roof": ROOFLINE, "model": MODEL}[name]
    if old.endswith("…"):
        old = text[text.index("\n  " + old[:-1]) + 1 :]
    else:
        old = old.encode().decode("unicode_escape")
    new = new.encode().decode("unicode_escape").replace("$GROUPS", GROUPS)
    assert old in text
    file = tmp_path / "lab.yaml"
    file.write_text(BARE + text.replace(old, new, 1))
    if not words:  # points may stay the same for a while
        load_lab(file)
        return
    refused(file, words.replace("$PIECES", "scoring.pieces"))
