"""A product that is right where shared memory begins at 0, or everywhere."""

from tests.support.files import beside

_FORMS = {"place": "start + swizzled({})", "address": "swizzled(start + {})"}


def swizzle(of: str) -> str:
    """Its source. of: what a swizzle uses the bits of, the "place" in a tile or the "address"."""
    first, second = (_FORMS[of].format(each) for each in ("a", "TILE + b"))
    return beside(__file__, "swizzle.cu", what=of, first=first, second=second)
