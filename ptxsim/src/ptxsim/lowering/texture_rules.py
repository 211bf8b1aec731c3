"""Lowering rules of textures and surfaces."""

from ptxsim.frontend.records import SIZES, Instruction
from ptxsim.lowering import operation as ops
from ptxsim.lowering.lower import Lowering

# By the name of a geometry: its dimensions, and whether a layer is named as well.
_GEOMETRIES = {
    **{"1d": (1, False), "2d": (2, False), "3d": (3, False)},
    **{"a1d": (1, True), "a2d": (2, True)},
}
_OUTSIDE = ("trap", "clamp", "zero")  # what becomes of an access outside its surface
_Place = tuple[list[ops.Operand], int, bool]  # handle and coordinates, dimensions, layers


def _place(low: Lowering, geometry: str, text: str) -> _Place:
    """``[texture, {layer, x, y, y}]``: the last coordinate of four may be there for its room."""
    if geometry not in _GEOMETRIES:
        raise low.unsupported()
    dimensions, layered = _GEOMETRIES[geometry]
    handle, _, listed = text.strip("[]").partition(",")
    places = low.vector(listed.strip(), "b32", output=False)
    count = dimensions + layered
    if len(places) != (4 if count == 3 else count):
        raise low.unsupported_form()
    ordered = [*places[1:count], places[0]] if layered else places[:count]
    absent: list[ops.Operand] = [None] * (3 - count)
    return [low.source(handle, "b64"), *ordered, *absent], dimensions, layered


def texture(low: Lowering, item: Instruction, mods: list[str]) -> None:
    """tex.2d.v4.f32.s32 {a, b, c, d}, [texture, {x, y}]; tex.level and tex.grad name a level of
    detail, of which no texture here has more than one."""
    if mods[0] in ("level", "grad"):
        mods = mods[1:]
    if len(mods) != 4 or mods[1] != "v4":
        raise low.unsupported()
    place, dimensions, layered = _place(low, mods[0], item.operands[1])
    result, coordinate = mods[2].replace("s", "u"), mods[3]
    operands = [*low.vector(item.operands[0], "b32", output=True), *place]
    name, flags = f"tex.{result}.{coordinate}", ops.OWN_TAINT
    low.emit_guarded(
        name, operands, imm=int(layered), width=4, vec=dimensions, space=ops.GLOBAL, flags=flags
    )


def surface(low: Lowering, item: Instruction, mods: list[str]) -> None:
    """suld.b.2d.v4.b32.trap {a, b, c, d}, [surface, {x, y}]; sust has its values last"""
    if mods[0] != "b" or mods[-1] not in _OUTSIDE or mods[-2] not in ("b8", "b16", "b32", "b64"):
        raise low.unsupported()
    loads = item.opcode.startswith("suld")
    listed, place = item.operands if loads else reversed(item.operands)
    values = low.vector(listed, mods[-2], output=loads)
    operands, dimensions, layered = _place(low, mods[1], place)
    widths = {each.width for each in values if isinstance(each, (ops.Register, ops.Constant))}
    if len(widths) != 1:
        raise low.unsupported_form()
    low.emit_guarded(
        item.opcode[:4],
        [*values, *([None] * (4 - len(values))), *operands],
        imm=layered | _OUTSIDE.index(mods[-1]) << 1 | len(values) << 3,
        width=SIZES[mods[-2]],
        vec=dimensions,
        space=ops.GLOBAL,
        dwidth=widths.pop(),
        flags=ops.OWN_TAINT,
    )
