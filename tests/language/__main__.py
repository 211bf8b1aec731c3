"""``python -m tests.language``: bring every catalogue up to date, and say what lacks a translation.

New texts get an empty translation, texts that are no longer used disappear.
"""

from tests.support.catalogues import catalogues, read, updated


def main() -> None:
    for path in catalogues():
        path.write_text(updated(path), encoding="utf-8")
        for message in read(path):
            strings = message.string if isinstance(message.string, tuple) else (message.string,)
            if message.id and not all(strings):
                print(f"{path.name}: not translated: {message.id!r}")


if __name__ == "__main__":
    main()
