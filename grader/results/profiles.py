"""What ``grade profile`` counted of a stored result's source, kept beside the result."""

from __future__ import annotations

from pathlib import Path

from grader.errors import StoreError
from grader.model import PROFILE_SCHEMA, PROFILE_VERSION, ProfileDocument
from grader.results import store


def profile_path(document: Path) -> Path:
    """document: of a result. The profile's own is hidden, for it is no result."""
    return document.with_name(f".{document.name.split('-')[0]}.profile")


def stored_profile(document: Path) -> ProfileDocument | None:
    """Of the source of this result document; None where there is none that can be read."""
    path = profile_path(document)
    try:
        return store.load_document(
            path, ProfileDocument, PROFILE_SCHEMA, PROFILE_VERSION, lambda older: older
        )
    except StoreError:
        return None
