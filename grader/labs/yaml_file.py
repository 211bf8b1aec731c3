"""A YAML file → a mapping; every mistake is one line with its place."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from grader.errors import LabError
from grader.labs.complaints import at, show, wanted
from grader.model import phrase


class _Loader(yaml.SafeLoader):
    """SafeLoader keeps the last of two equal keys; a lab must not lose one silently. Times stay
    text: SafeLoader drops a zone that it cannot read."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own, one tag less
        first: [each for each in resolvers if each[0] != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        mapping: dict[Hashable, Any] = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=deep)
            if not isinstance(key, str):
                problem = f"expected a field name, got the key {key!r}"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            if key in mapping:
                problem = f"key {key!r} appears twice; keep one"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            mapping[key] = self.construct_object(value_node, deep=deep)
        return mapping


def parse(path: Path, data: bytes, example: Path) -> dict[str, Any]:
    """example: what a message about an empty file names. Raises LabError."""
    try:
        document = yaml.load(data, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        why = str(error.problem or error.context)
        raise LabError(at(where, phrase("not valid YAML: {why}", why=why))) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # dates, huge numbers, nesting
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise LabError(at(str(path), phrase("not valid YAML: {why}", why=reason))) from None
    if document is None:
        empty = phrase("the file is empty; start from {example}", example=str(example))
        raise LabError(at(str(path), empty))
    if not isinstance(document, dict):
        fields = phrase("fields such as {example}", example="'id: sgemm'")
        raise LabError(at(str(path), wanted(fields, show(document))))
    return document
