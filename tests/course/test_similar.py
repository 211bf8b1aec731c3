"""Copies are found however they are dressed; kernels written on their own are not."""

import builtins
import itertools
import re
import shutil
from pathlib import Path

import pytest

from grader.base.errors import MachineError
from grader.cli import entry as cli
from grader.course.similar import (
    ComparedWork,
    PairSide,
    Passage,
    SimilarPair,
    find_copies,
    find_pairs,
)
from grader.course.similar_rendering import pages
from tests.support.browser import MOST_BYTES, Browser, assert_readable
from tests.support.catalogues import assert_chinese
from tests.support.places import CORRECT, ROOT

ALICE = (ROOT / "submissions" / "alice" / "sgemm.cu").read_text()
# Tiles in shared memory and in registers, each version written independently.
SHAPES = (
    *("tiled_template", "double_buffer", "register_tile", "warp_tile", "work_per_thread"),
    *("cp_async_intrinsic", "float4_vectorised", "switch_statement", "odd_blocks"),
    *("uninitialised_padding", "dynamic_shared", "shared_union", "named_barriers"),
)
REFERENCE = ROOT / "reference" / "sgemm"

# tiled_template with every name changed, declarations split and swapped, the host code's wrapper
# moved, other comments and another layout of the lines.
DISGUISED = Path(__file__).with_name("disguised.cu").read_text()


def work(student: str, text: str, **more: str) -> ComparedWork:
    return ComparedWork(student=student, files={"sgemm.cu": text, **more})


def text_of(path: Path) -> ComparedWork:
    return ComparedWork(student="", files={"": path.read_text()})


STARTERS = [text_of(path) for path in sorted((ROOT / "starter").glob("*.cu*"))]
KNOWN = [*STARTERS, *map(text_of, sorted((ROOT / "reference").rglob("*.cu*")))]


def rung(name: str) -> ComparedWork:
    files = {path.name: path.read_text() for path in sorted((REFERENCE / name).glob("*.cu*"))}
    return ComparedWork(student=name, files=files)


def the_class() -> list[ComparedWork]:
    return [work(name, (CORRECT / name / "sgemm.cu").read_text()) for name in SHAPES]


def renamed(text: str) -> str:
    """Other names for everything that a student named, no comments, functions in another order."""
    text = re.sub(r"//.*", "", text)
    own = r"\b(load_tile|tile|row|col|src|acc|[AB]s|row0|col0|t[xy]|whole|out|[BT][MNK]|PAD)\b"
    text = re.sub(own, r"n_\1", text)
    device, kernel = text.index("__device__"), text.index("__global__")
    declaration = text[device : text.index("{", device)] + ";\n"
    end = text.index("template <>")
    return text[:device] + declaration + text[kernel:end] + text[device:kernel] + text[end:]


@pytest.mark.sampled
def test_copies_in_disguise_are_found_and_nothing_else() -> None:
    works = [*the_class(), work("alice", ALICE), work("mallory", renamed(ALICE))]
    works.append(work("disguised", DISGUISED))
    pairs = find_pairs([works], KNOWN)
    found = {(pair.one.student, pair.other.student) for pair in pairs}
    assert found == {("alice", "mallory"), ("tiled_template", "disguised")}
    # The row-major rungs share a little with the tiled one.
    assert all(pair.share > 0.75 for pair in pairs)


@pytest.mark.sampled
def test_kernels_of_the_same_shape_are_not_alike() -> None:
    assert find_pairs([the_class()], KNOWN, threshold=0.5) == ()


def test_what_everybody_was_given_does_not_count() -> None:
    """Rungs 29 and 30 repeat many runs of their own, which once made them a pair."""
    both = [rung("29_reuse_order"), rung("30_shared_tail")]
    assert len(find_pairs([both], [])) == 1
    assert find_pairs([both], [*STARTERS, *both]) == ()


def test_a_copy_of_a_rung_is_reported_as_that() -> None:
    """However it is dressed, as the rung that it has most of; kernels of one's own are none."""
    rungs = [rung(name) for name in ("07_tile_template", "24_rasterised", "25_split_k")]
    text = rungs[2].files["sgemm.cu"]
    works = [
        work("bob", text.replace("acc", "sum").replace("// ", "// my ")),
        work("cy", ALICE),
        work("dan", (CORRECT / "tiled_template" / "sgemm.cu").read_text()),
        work("eve", STARTERS[-1].files[""]),
        work("finn", ALICE + rungs[0].files["sgemm.cu"]),
    ]
    copies = find_copies(works, rungs, STARTERS)
    found = [(copy.one.student, copy.other.student) for copy in copies]
    assert found == [("bob", "25_split_k"), ("finn", "07_tile_template")]
    assert all(copy.other.share > 0.9 for copy in copies)


def test_what_is_written_often_counts_once() -> None:
    """Two kernels that have an idiom in common, and use it a lot."""
    idiom = "if (cudaSuccess != cudaGetLastError()) { return exit(1); } else { count += 1; }\n"
    texts = [
        (CORRECT / name / "sgemm.cu").read_text().replace(";\n}", f";\n{idiom * 30}}}")
        for name in ("warp_tile", "odd_blocks")
    ]
    assert find_pairs([[work("ann", texts[0]), work("bob", texts[1])]], STARTERS) == ()


@pytest.mark.sampled
def test_what_many_have_is_an_idiom() -> None:
    few = [work(f"s{i}", ALICE) for i in range(4)]
    assert len(find_pairs([few], KNOWN)) == 6
    many = [work(f"s{i}", ALICE) for i in range(11)]
    assert find_pairs([many], KNOWN) == ()


def test_where_nothing_is_to_be_compared_nothing_is_read() -> None:
    unread = (str(1 // 0) for _ in "x")
    assert find_pairs([[work("ann", ALICE)], [], [work("bob", ALICE)]], unread) == ()


def test_a_part_that_was_copied_is_pointed_at() -> None:
    loader = ALICE[ALICE.index("__device__") : ALICE.index("__global__")]
    main = "\n\n" + '#include "load.cuh"\n'
    works = [work("alice", ALICE), work("eve", main, **{"load.cuh": "\n\n" + loader})]
    (pair,) = find_pairs([works], KNOWN, threshold=0.2)
    assert {passage.file for passage in pair.other.passages} == {"load.cuh"}
    start = 1 + ALICE[: ALICE.index("__device__")].count("\n")
    theirs = set(range(start, start + loader.strip().count("\n") + 1))
    marked = {line for p in pair.one.passages for line in range(p.first, p.last + 1)}
    assert len(marked & theirs) > 0.8 * len(theirs)
    assert len(marked - theirs) <= 6  # two lines elsewhere are written alike, and edges
    assert pair.other.passages[0].first >= 3  # the two empty lines count


@pytest.mark.sampled
def test_the_page_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    works = [work("<alice>", ALICE), work("mallory", renamed(ALICE))]
    file = tmp_path / "similar.html"
    (text,) = pages(find_pairs([works], KNOWN), works, 2).values()
    file.write_text(text)
    assert_readable(browser, file)
    assert "<script" not in text
    assert "<alice>" not in text
    assert 'class="marked"' in text
    assert "No two of them" in pages((), works, 2)["similar.html"]


def test_every_pair_has_its_sources_on_pages_that_stay_small() -> None:
    works = [work(f"student{i:02}", renamed(ALICE)) for i in range(8)]
    works.append(work("long", "int x = 1;\n" * 20_000))
    passages = (Passage(file="sgemm.cu", first=1, last=20),)
    sides = [PairSide(student=each.student, share=0.9, passages=passages) for each in works]
    pairs = [
        SimilarPair(one=one, other=other, characters=5000)
        for one, other in itertools.combinations(sides, 2)
    ]
    found = pages(pairs, works, len(works))
    assert len(found) > 1 and list(found)[1] == "similar-2.html"
    assert all(len(text.encode()) <= MOST_BYTES for text in found.values())
    assert sum(text.count('<div class="twins">') for text in found.values()) == len(pairs)
    assert 'href="similar-2.html"' in found["similar.html"]
    assert "too long to show" not in "".join(found.values())  # its shared lines are not


@pytest.fixture
def in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.sampled
def test_the_command(in_place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(CORRECT / "tiled_template", in_place / "class" / "ann")
    (in_place / "class" / "bob.cu").write_text(DISGUISED)
    (in_place / "class" / "empty").mkdir()
    assert cli.main(["similar", "class"]) == 0
    said = "".join(capsys.readouterr())
    assert re.search(r"ann +\d\d+ % +bob +\d\d+ %", said)
    assert "skipped: empty: " in said
    assert "no proof" in said
    assert cli.main(["similar", "class", "--language", "zh"]) == 0
    assert_chinese(capsys.readouterr().out)
    assert 'lang="zh-CN"' in Path("results/similar.html").read_text()
    page = Path("results/similar.html")
    assert page.stat().st_mode & 0o077 == 0
    assert "bob" in page.read_text()
    assert cli.main(["similar", "class", "--threshold", "100", "--known", "class"]) == 0
    assert "no suspiciously similar pairs" in capsys.readouterr().out
    assert cli.main(["similar", "class", "--known", "results"]) == 2
    assert "no CUDA source in it" in capsys.readouterr().err


def test_macros_hide_no_copy(in_place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Macros for every token, in a header and behind conditions that only the compiler can tell; a
    source that cannot be preprocessed is compared as it is written."""
    place = in_place / "class"
    for student in ("alice", "macro", "laughs", "moved"):
        (place / student).mkdir(parents=True)
        (place / student / "sgemm.cu").write_text(ALICE)
    names = ("int", "float", "for", "const", "if", "return", "void", "size_t", "float4")
    text = ALICE
    for number, name in enumerate(names):
        text = re.sub(rf"\b{name}\b", f"K{number}", text)
    macros = "".join(f"#define K{number} {name}\n" for number, name in enumerate(names))
    macros += "#define SEMI ,\n#ifdef CUDART_VERSION\n#undef SEMI\n#define SEMI ;\n#endif\n"
    macros += "#define GET(x, y) x[y]\n"
    text = text.replace(";", " SEMI ").replace("src[0]", "GET(src, 0)")
    (place / "macro" / "names.h").write_text(macros)
    (place / "macro" / "sgemm.cu").write_text(f'#include "names.h"\n{text}')
    doubled = "".join(f"#define A{i} {f'A{i - 1} ' * 20}\n" for i in range(1, 9))
    (place / "laughs" / "sgemm.cu").write_text(f"{doubled}int y = A8;\n")
    (place / "moved" / "sgemm.cu").write_text('#define X\n#line 1 "/usr/include/x.h"\nint y;\n')
    assert cli.main(["similar", "class", "--threshold", "90"]) == 0
    said = capsys.readouterr()
    assert re.search(r"alice +100 % +macro +100 %", said.out), said.out
    assert "laughs: macros are not expanded: it cannot be preprocessed; compared" in said.err
    assert "moved: macros are not expanded: it has #line directives; compared" in said.err
    assert said.out.count("%") == 2
    page = Path("results/similar.html").read_text()
    assert "K1" in page  # as it was handed in


@pytest.mark.sampled
def test_each_labs_submissions_are_compared_without_naming_it(
    in_place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A class with two labs in its folders: copies are found in both, and none between them."""
    for name, main in (("ann", "sgemm.cu"), ("bob", "sgemm.cu"), ("cy", "reduction.cu")):
        (in_place / "class" / name).mkdir(parents=True)
        (in_place / "class" / name / main).write_text(DISGUISED)
    (in_place / "class" / "ann" / "reduction.cu").write_text(DISGUISED)
    assert cli.main(["similar", "class"]) == 0
    said = "".join(capsys.readouterr())
    assert re.search(r"ann +\d\d+ % +bob +\d\d+ %", said)
    assert re.search(r"ann \(reduction.cu\) +\d\d+ % +cy +\d\d+ %", said), said
    assert not re.search(r"bob .* cy ", said)
    assert cli.main(["similar", "class", "--lab", "reduction"]) == 0
    said = "".join(capsys.readouterr())
    assert re.search(r"ann +\d\d+ % +cy", said) and "skipped: bob: reduction.cu is missing" in said


@pytest.mark.sampled
def test_a_text_that_the_tokeniser_chokes_on_is_named(
    in_place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("grader.course.similar._CPU_SECONDS", 0.3)
    (in_place / "class").mkdir()
    shutil.copy(CORRECT / "tiled_template" / "sgemm.cu", in_place / "class" / "ann.cu")
    (in_place / "class" / "bob.cu").write_text("int x;" + "\n" * 100_000 + "int y;")
    (in_place / "class" / "cid.cu").write_text("int x;\n" * 100_000)
    assert cli.main(["similar", "class"]) == 0
    said = "".join(capsys.readouterr())
    assert "skipped: bob: not compared: it takes too long" in said
    assert "skipped: cid: not compared: it takes too long" in said
    assert "pairs among 1" in said


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: object, **named: object) -> object:
        if name.startswith("copydetect"):
            raise ImportError(name)
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MachineError, match=r"pip install 'sgemm-grader\[similar\]'"):
        find_pairs([], [])
