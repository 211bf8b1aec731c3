"""``grade new NAME --lab LAB``: a folder for a student to begin with."""

from __future__ import annotations

import shutil
import tempfile
import unicodedata
from pathlib import Path

from rich.console import Console

from grader.base import ENGLISH, Language, ToolchainError, UsageError
from grader.build import FILE, editor_flags, find_toolchain
from grader.cli.chosen_lab import LAB, LabName, chosen_lab, find_starter
from grader.cli.comments import translated
from grader.cli.console import DONE, answer, say, speak_as, spoken
from grader.cli.defaults import SUBMISSIONS, course_root, default_of
from grader.cli.options import OptionGroup, argument
from grader.labs import Lab
from ptxsim.text import phrase, verbatim


class NewOptions(OptionGroup):
    """Copy a lab's starter to submissions/NAME, with compile_flags.txt for clangd."""

    name: str = argument("of the new folder", "NAME")
    lab: LabName = LAB


def run(chosen: NewOptions, console: Console) -> int:
    lab = chosen_lab(chosen.lab)
    speak_as(lab, console)
    flags: str | None = None
    try:
        flags = editor_flags(find_toolchain())
    except ToolchainError as error:  # a student may begin before the machine can grade
        without = phrase("without {file}, which tells an editor where CUDA is: {reason}")
        say(console, without.given(file=FILE, reason=error.message))
    folder = new_submission(chosen.name, course_root(), lab, flags, spoken(console))
    main = lab.problem.interface.main
    command = f"grade {folder}" + (
        f" --lab {chosen.lab}" if chosen.lab != default_of("lab") else ""
    )
    ready = phrase("{folder}/ is ready: edit {folder}/{main}, then: {command}")
    ready = ready.given(folder=str(folder), main=main, command=command)
    answer(console, ready)
    return DONE


_LONGEST = 64  # characters of a name


def _allowed(name: str) -> bool:
    """Whether these are letters and digits of any script, with their marks, and few signs."""
    signs = name[1:].translate(str.maketrans("", "", "._-"))
    return name[:1].isalnum() and all(
        each.isalnum() or unicodedata.category(each).startswith("M") for each in signs
    )


def new_submission(
    name: str, base: Path, lab: Lab, flags: str | None, language: Language = ENGLISH
) -> Path:
    """Copy the lab's starter to ``base``/submissions/``name``, its texts in ``language``.

    flags: for compile_flags.txt; None: without. Raises UsageError if the name is not allowed, the
    folder exists or there is no starter.
    """
    name = unicodedata.normalize("NFC", name)  # as keyboards write it
    if not _allowed(name) or len(name) > _LONGEST:
        refused = phrase(
            "{name} is not allowed as a name: use letters, digits, '.', '_' and '-', starting "
            "with a letter or digit, at most {most} characters"
        )
        raise UsageError(refused.given(name=repr(name), most=_LONGEST))
    starter = find_starter(base, lab)
    target = base / SUBMISSIONS / name
    if target.exists() or target.is_symlink():
        taken = phrase("{folder} already exists; choose another name or remove it first")
        raise UsageError(taken.given(folder=str(target)))
    try:
        target.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=target.parent) as scratch:
            copy = Path(scratch) / name
            shutil.copytree(starter, copy)
            _speak(copy, language)
            _complete(copy, lab, language)
            if flags is not None:
                (copy / FILE).write_text(flags, encoding="utf-8")
            copy.rename(target)  # all or nothing, and never over an existing folder
    except OSError as error:
        failed = phrase("{folder}: cannot be created: {why}", folder=str(target))
        raise UsageError(failed.given(why=str(error.strerror))) from None
    return target


def _complete(folder: Path, lab: Lab, language: Language) -> None:
    """Write the header and a README where the starter of a course's own problem has none."""
    if lab.program:
        return
    asked = lab.problem.interface
    if not (header := folder / asked.header).exists():
        header.write_text(asked.text, encoding="utf-8")
    if not (readme := folder / "README.md").exists():
        words = phrase("Edit {main}: define the function that {header} declares.")
        said = language(words.given(main=asked.main, header=asked.header))
        title = language(verbatim(lab.problem.title))
        text = f"# {title}\n\n{said}\n\n```cuda\n{asked.text}```\n"
        readme.write_text(text, encoding="utf-8")


def _speak(folder: Path, language: Language) -> None:
    """Translate comments, and keep each document in one language, such as ``README.zh.md``."""
    if language is not ENGLISH:
        for source in (*folder.rglob("*.cu"), *folder.rglob("*.cuh")):
            text = source.read_text(encoding="utf-8", errors="surrogateescape")
            text = translated(text, language)
            source.write_text(text, encoding="utf-8", errors="surrogateescape")
    for document in folder.glob("*.??.md"):
        name, tag, _ = document.name.rsplit(".", 2)
        if tag == language.code.partition("_")[0]:
            document.replace(folder / f"{name}.md")
        else:
            document.unlink()
