"""What `ptxsim exec` finds between calls, and the documents that say so."""

import json
from pathlib import Path

import pytest

from program_runs import built, called, line_of, ptxsim, rows
from ptxsim import execute
from ptxsim.launching import default_engine


@pytest.fixture(scope="module", autouse=True)
def engine_is_there() -> None:
    """Else the first program says that it is compiled."""
    default_engine()


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("wrong", tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("streams", tmp_path_factory.mktemp("programs"))


@pytest.mark.parametrize(("case", "says"), rows("streams.txt"))
def test_operations_on_two_streams(
    streams: Path, case: str, says: str, capfd: pytest.CaptureFixture[str]
) -> None:
    done = called("exec", "streams", "--", case, folder=streams, capfd=capfd)
    says = says.replace("$LINE", str(line_of("streams", case)))
    assert done.returncode == bool(says), done.stderr
    assert says.replace("$FILL", str(line_of("streams", "FILL"))) in done.stderr
    assert done.stderr.count("error:") == bool(says)
    assert done.stdout == "cudaSuccess\n"


def test_documents_say_what_the_words_say(wrong: Path) -> None:
    options = ("--json", "found.json", "--sarif", "found.sarif")
    done = ptxsim("exec", "wrong", *options, "--", "overrun", folder=wrong)
    document = json.loads((wrong / "found.json").read_text())
    (error,) = document.pop("findings")
    assert document == {
        "status": 0,
        "launches": 2,
        "skipped": 0,
        "refused": None,
        "notes": [],
    }
    assert (error["kind"], error["severity"], error["count"]) == ("out-of-bounds", "error", 16)
    assert (error["file"], error["line"]) == ("wrong.cu", line_of("wrong", "overrun"))
    assert (error["block"], error["thread"]) == ([0, 0, 0], [16, 0, 0])
    assert error["message"] in done.stderr
    (run,) = json.loads((wrong / "found.sarif").read_text())["runs"]
    (result,) = run["results"]
    assert (result["ruleId"], result["message"]["text"]) == ("out-of-bounds", error["message"])
    (place,) = result["locations"]
    assert place["physicalLocation"]["artifactLocation"] == {"uri": "wrong.cu"}


def test_a_program_may_be_ended_by_its_first_error(wrong: Path) -> None:
    done = ptxsim("exec", "wrong", "--stop", "--", "overrun", folder=wrong)
    assert (done.returncode, done.stdout) == (1, "")
    assert "out-of-bounds: global write" in done.stderr
    assert ptxsim("exec", "wrong", "--stop", "--", "leak", folder=wrong).returncode == 0


def test_a_program_in_python(wrong: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(wrong)
    right = execute("wrong", ["none"], captured=True)
    assert (right.status, right.printed, right.launches) == (0, "cudaSuccess\n", 1)
    assert right.clean and not right.remarks and not str(right)
    ended = execute("wrong", ["overrun"], captured=True)
    assert [each.kind for each in ended.remarks] == ["out-of-bounds"] and not ended.clean
    assert f"> {line_of('wrong', 'overrun')} │" in str(ended)
