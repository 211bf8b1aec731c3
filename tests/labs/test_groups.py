"""Hidden sizes: drawn by a secret, the same for the whole class, other ones by another secret."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

import pytest

from grader.base.errors import LabError
from grader.base.language import language
from grader.labs.lab import Lab, load_lab, revealed
from tests.support.catalogues import assert_chinese
from tests.support.files import beside, table

LAB = beside(__file__, "sealed.yaml")
SEED = "a secret of enough bytes"


def load(place: Path, seed: str | None = SEED, text: str = LAB) -> Lab:
    (place / "lab.yaml").write_text(text)
    if seed is not None:
        (place / "hidden.seed").write_text(seed)
    return load_lab(place / "lab.yaml")


def sizes(lab: Lab) -> list[tuple[int, ...]]:
    assert lab.hidden is not None
    every = (*lab.hidden.correctness, *lab.hidden.performance, *lab.hidden.cpu)
    return [case.size.extents for case in every]


def test_the_same_secret_draws_the_same_sizes(tmp_path: Path) -> None:
    lab, again = load(tmp_path), load(tmp_path, f"{SEED}\n")
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
    lab = load(tmp_path)
    assert lab.hidden is not None
    assert lab.hidden.cpu[0].size["m"] == expected


def test_another_secret_draws_others_and_is_another_lab(tmp_path: Path) -> None:
    lab, other = load(tmp_path), load(tmp_path, "another secret of enough bytes")
    assert set(sizes(lab)).isdisjoint(sizes(other))
    assert lab.sha256 != other.sha256


def test_without_the_secret_the_public_sizes_remain(tmp_path: Path) -> None:
    lab = load(tmp_path, seed=None)
    assert lab.hidden is not None and not lab.hidden.known
    assert sizes(lab) == []
    assert lab.timed == lab.performance
    assert lab.sha256 != load(tmp_path).sha256
    assert [case.id for case in revealed(load(tmp_path)).cpu][:2] == ["cpu-0", "hidden-cpu-0"]


def test_hidden_sizes_are_never_public_ones(tmp_path: Path) -> None:
    narrow = LAB.replace("[[1, 9], 7, [1, 9]]", "[8, 8, [7, 8]]").replace(", count: 3", "")
    for number in range(8):
        lab = load(tmp_path, f"secret number {number} of eight", narrow)
        assert lab.hidden is not None
        assert lab.hidden.cpu[1].size.extents == (8, 8, 7)


@pytest.mark.parametrize(("old", "new", "words"), table(__file__, "hidden_mistakes.txt"))
def test_a_mistake_is_one_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    old = old.encode().decode("unicode_escape")
    assert old in LAB
    with pytest.raises(LabError) as caught:
        load(tmp_path, text=LAB.replace(old, new, 1))
    assert str(tmp_path / "lab.yaml") in str(caught.value)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert_chinese(language("zh_CN")(caught.value.message))


def test_a_short_secret_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"hidden\.seed: a seed has 16 to 4096 bytes, this file 5"):
        load(tmp_path, "short")
