"""The rules that readers of our formats set, as far as a test can hold results against them."""

from __future__ import annotations

VISIBILITIES = {"hidden", "after_due_date", "after_published", "visible"}
FORMATS = {"text", "html", "simple_format", "md", "ansi"}


def check_gradescope(document: dict[str, object]) -> None:
    """Gradescope's rules for results.json."""
    top = {
        *("score", "execution_time", "output", "output_format", "visibility"),
        *("stdout_visibility", "extra_data", "tests", "leaderboard"),
    }
    assert set(document) <= top
    assert document["visibility"] in VISIBILITIES
    assert document["stdout_visibility"] in VISIBILITIES
    assert document["output_format"] in FORMATS
    tests = document["tests"]
    assert isinstance(tests, list)
    assert "score" in document or (tests and all("score" in test for test in tests))
    fields = {
        *("name", "number", "score", "max_score", "status", "output", "output_format"),
        *("tags", "visibility", "extra_data"),
    }
    for test in tests:
        assert set(test) <= fields
        assert test["status"] in ("passed", "failed")
        assert test["visibility"] in VISIBILITIES
    for entry in document.get("leaderboard", []):  # type: ignore[attr-defined]
        assert set(entry) == {"name", "value", "order"}
        assert entry["order"] in ("asc", "desc")
