"""What students read, in their language: one catalogue, ``CODE.po``, for each beside English."""

from __future__ import annotations

from grader.language.catalogue import ENGLISH, Language, known_languages, language
from grader.language.choice import choose_language

__all__ = ["ENGLISH", "Language", "choose_language", "known_languages", "language"]
