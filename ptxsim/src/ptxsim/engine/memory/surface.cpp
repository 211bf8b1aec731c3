// suld.b and sust.b: loads and stores through surface objects. x counts bytes.
#include <algorithm>

#include "../checks/early_looks.hpp"
#include "../checks/global_races.hpp"
#include "../checks/undefined.hpp"
#include "../program/operations.hpp"
#include "access.hpp"
#include "texture.hpp"

namespace sim {
namespace {

// What an access outside its surface does, as rules of the lowering number it.
enum Outside : u8 { TRAPS, CLAMPS, GIVES_ZERO };

struct SurfaceOperands { i32 values[4], handle, at[3]; };

Outside outside(const Ins& i) { return Outside(i.offset() >> 1 & 3); }
u32 elements(const Ins& i) { return u32(i.offset() >> 3); }

void report_outside(Warp& w, int lane, i64 bytes, const i64* at, bool write) {
  Event e = event_at(w, OUT_OF_SURFACE, lane);
  e.write = write;
  e.size = u32(bytes);
  set_details(e, {at[0], at[1], at[2]});
  w.block->machine->report(e);
}

// Where in memory a lane's access lies; 0: nowhere.
u64 place_of(Warp& w, const Ins& i, int lane, bool write) {
  const auto o = operands<SurfaceOperands>(i);
  Texture t;
  const u64 handle = lanes<u64>(w, o.handle)[lane];
  const bool there = find_texture(w, handle, t) && t.surface;
  if (!there || t.dimensions != i.vec || names_layer(i) != (t.layers > 0)) {
    Event e = event_at(w, BAD_SURFACE, lane);
    e.address = handle;
    set_details(e, {there ? t.dimensions + (t.layers > 0) : 0, i.vec + names_layer(i)});
    w.block->machine->report(e);
    return 0;
  }
  const i64 bytes = i64(i.width) * elements(i);
  i64 at[3] = {};
  bool inside = true;
  for (int axis = 0; axis < i.vec + names_layer(i); ++axis) {
    at[axis] = lanes<i32>(w, o.at[axis])[lane];
    i64 most = axis < i.vec ? i64(t.extents[axis]) - 1 : i64(t.layers) - 1;
    if (axis == 0) most = i64(t.extents[0]) * texel_bytes(t) - bytes;
    inside &= at[axis] >= 0 && at[axis] <= most;
    if (outside(i) == CLAMPS) at[axis] = std::clamp<i64>(at[axis], 0, std::max<i64>(most, 0));
  }
  if (!inside && outside(i) == TRAPS) report_outside(w, lane, bytes, at, write);
  if (!inside && outside(i) != CLAMPS) return 0;
  const u64 layer = t.layers ? at[i.vec] : 0, row = i.vec > 1 ? at[1] : 0;
  return texel_address(t, u64(at[0]), row, i.vec > 2 ? at[2] : layer);
}

template <bool write> Flow surface(Warp& w, const Ins& i) {
  const auto o = operands<SurfaceOperands>(i);
  for (const i32 slot : {o.handle, o.at[0], o.at[1], o.at[2]})
    check_defined(w, slot, UNDEFINED_ADDRESS, false);
  const u32 count = elements(i);
  for (u32 v = 0; write && v < count; ++v)
    check_defined(w, o.values[v], UNDEFINED_STORE, false, i.width);
  Access a{};
  a.bytes = i.width * count;
  for (u32 rest = w.exec; rest; rest &= rest - 1) {
    const int l = __builtin_ctz(rest);
    a.at[l] = place_of(w, i, l, write);
    a.mask |= u32(a.at[l] != 0) << l;
  }
  for (u32 rest = ~a.mask; rest && a.mask; rest &= rest - 1)
    a.at[__builtin_ctz(rest)] = a.at[a.first()];
  drop_misaligned(w, a, GLOBAL, write);
  Region* const common = a.mask ? settle_global(w, a, GLOBAL, write) : nullptr;
  if (a.mask) trace(w, a, write ? WRITTEN : READ);
  u32 undefined = 0;
  for (u32 rest = w.exec; rest; rest &= rest - 1) {
    const int l = __builtin_ctz(rest);
    const bool valid = a.mask >> l & 1;
    i64 index = hint_of(w, GLOBAL).region;
    Region* const r = common || !valid ? common : w.block->machine->find(a.at[l], index);
    if (write && (!valid || r->made_up)) continue;
    if (valid && !write)
      undefined |= u32(global_read(w, l, *r, index, a.at[l], a.bytes, true)) << l;
    for (u32 v = 0; v < count; ++v) {
      u8* const at = valid ? r->at(a.at[l]) + size_t(v) * i.width : nullptr;
      u64 value = 0;
      if (!write) {
        if (valid) std::memcpy(&value, at, i.width);
        if (i.dwidth == 8) lanes<u64>(w, o.values[v])[l] = value;
        else lanes<u32>(w, o.values[v])[l] = u32(value);
        continue;
      }
      value = i.dwidth == 8 ? lanes<u64>(w, o.values[v])[l] : lanes<u32>(w, o.values[v])[l];
      const u64 address = a.at[l] + u64(v) * i.width;
      const bool same = std::memcmp(at, &value, i.width) == 0;
      std::memcpy(at, &value, i.width);
      forget_before(*w.block->machine, address);
      global_write(w, l, *r, index, address, i.width, same, false, true);
      w.block->machine->changes += !same;
      w.block->machine->stores += 1;
    }
  }
  if (a.mask && !write) remember_reads(w, common, a);
  for (u32 v = 0; !write && v < count; ++v)
    if (undefined || w.tainted) mark_undefined(w, o.values[v], undefined, w.pc);
  return Flow::next;
}

bool takes_surface(const Program& p, const Ins& i) {
  const u32 count = elements(i);
  if (!takes_texture(p, i) || outside(i) > GIVES_ZERO || (count != 1 && count != 2 && count != 4))
    return false;
  if (i.width != 1 && i.width != 2 && i.width != 4 && i.width != 8) return false;
  return i.width * count <= 16 && std::all_of(i.o, i.o + count, [](i32 o) { return o >= 0; });
}

}  // namespace

void add_surfaces(Table& t) {
  add(t, "suld", surface<false>, "VVVV>wnNN", takes_surface);
  add(t, "sust", surface<true>, ">VVVVwnNN", takes_surface);
}

}  // namespace sim
