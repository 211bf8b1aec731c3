#include "access.hpp"

#include <algorithm>

#include "../checks/undefined.hpp"

namespace sim {

void resolve_addresses(Warp& w, const Ins& i, Access& a) {
  a.mask = w.exec;
  a.bytes = i.width * i.vec;
  if (i.base() < 0) {
    std::fill(a.at, a.at + LANES, u64(i.offset()));
    return;
  }
  check_defined(w, i.base(), UNDEFINED_ADDRESS, false);
  if (i.base_bytes() == 8) {
    const u64* base = lanes<u64>(w, i.base());
    for (int l = 0; l < LANES; ++l) a.at[l] = base[l] + i.offset();
  } else {
    const u32* base = lanes<u32>(w, i.base());
    for (int l = 0; l < LANES; ++l) a.at[l] = u32(base[l] + u32(i.offset()));
  }
  if (a.mask != ALL) {
    u64 first = a.at[a.first()];
    for (int l = 0; l < LANES; ++l)
      if (!(a.mask >> l & 1)) a.at[l] = first;
  }
}

void drop_misaligned(Warp& w, Access& a, u8 space, bool write) {
  u64 bits = 0;
  for (int l = 0; l < LANES; ++l) bits |= a.at[l];
  if (!(bits & (a.bytes - 1))) return;
  for (int l = 0; l < LANES; ++l) {
    if (!(a.mask >> l & 1) || !(a.at[l] & (a.bytes - 1))) continue;
    Event e = event_at(w, MISALIGNED, l);
    e.address = a.at[l];
    e.size = a.bytes;
    e.space = space;
    e.write = write;
    if (space != SHARED) {
      i64 index = -1;
      if (Region* r = w.block->machine->find(a.at[l], index);
          r && within(a.at[l], 1, r->base, r->size)) {
        e.region = index;
        e.region_start = r->base;
        e.region_size = r->size;
      }
    }
    w.block->machine->report(e);
    a.mask &= ~(1u << l);
  }
}

namespace {

void out_of_bounds(Warp& w, Access& a, int lane, u8 space, bool write, i64 region, u64 start,
                   u64 size) {
  Event e = event_at(w, OUT_OF_BOUNDS, lane);
  e.address = a.at[lane];
  e.size = a.bytes;
  e.space = space;
  e.write = write;
  e.region = region;
  e.region_start = start;
  e.region_size = size;
  w.block->machine->report(e);
  a.mask &= ~(1u << lane);
}

struct Span { u64 first, last; };  // of the lanes' addresses
Span range_of(const Access& a) {
  u64 first = a.at[0], last = a.at[0];
  for (int l = 1; l < LANES; ++l) {
    first = std::min(first, a.at[l]);
    last = std::max(last, a.at[l]);
  }
  return {first, last};
}

constexpr size_t MOST_TOLD_APART = 63;  // arrays of Program::own_arrays
constexpr u64 NEARBY = u64{1} << 30;    // bytes: farther off, an address belongs to no allocation

// How many bytes an address lies before the start of an array, or behind its last byte.
u64 distance(i64 address, const SharedArray& array) {
  const i64 end = i64(array.start) + array.size;
  return u64(address < array.start ? array.start - address : std::max<i64>(address - end + 1, 0));
}

}  // namespace

Region* settle_global(Warp& w, Access& a, u8 space, bool write) {
  Machine& m = *w.block->machine;
  Hint& hint = hint_of(w, space);
  Span span = range_of(a);
  if (hint.holds(span.first, span.last, a.bytes)) return m.regions[hint.region].get();
  i64 common = -1;
  bool several = false;
  for (int l = 0; l < LANES; ++l) {
    if (!(a.mask >> l & 1)) continue;
    i64 index = -1;
    Region* r = m.find(a.at[l], index);
    if (!r || !within(a.at[l], a.bytes, r->base, r->size)) {
      // Name the nearest allocation, so that "12 bytes before B" can be said too.
      i64 next = r ? index + 1 : 0;
      const bool begins_inside = r && within(a.at[l], 1, r->base, r->size);
      bool before = !begins_inside && next < i64(m.regions.size()) &&
                    (!r || m.regions[next]->base - a.at[l] < a.at[l] - (r->base + r->size)) &&
                    m.regions[next]->base - a.at[l] < NEARBY;
      if (before) index = next, r = m.regions[next].get();
      else if (r && a.at[l] - r->base > r->size + NEARBY) r = nullptr;
      out_of_bounds(w, a, l, space, write, r ? index : -1, r ? r->base : 0, r ? r->size : 0);
      continue;
    }
    if (common >= 0 && common != index) several = true;
    common = index;
  }
  if (common < 0 || several) return nullptr;
  Region* r = m.regions[common].get();
  hint.low = r->base;
  hint.high = r->base + r->size;
  hint.region = common;
  return r;
}

void settle_shared(Warp& w, Access& a, bool write) {
  Hint& hint = hint_of(w, SHARED);
  Span span = range_of(a);
  if (hint.holds(span.first, span.last, a.bytes)) return;
  const auto& arrays = w.program->arrays;
  const u64 own = w.program->own_arrays[w.pc];
  for (int l = 0; l < LANES; ++l) {
    if (!(a.mask >> l & 1)) continue;
    const i64 at = a.at[l] >> 32 ? i64(a.at[l] << 8) >> 8 : i32(a.at[l]);  // it may be negative
    a.at[l] = u64(at);
    i64 nearest = -1;
    bool inside = false;
    for (size_t k = 0; k < arrays.size() && !inside; ++k) {
      if (k < MOST_TOLD_APART && !(own >> k & 1)) continue;
      inside = at >= 0 && within(u64(at), a.bytes, arrays[k].start, arrays[k].size);
      if (inside || nearest < 0 || distance(at, arrays[k]) < distance(at, arrays[nearest]))
        nearest = k;
    }
    if (inside) {
      hint.low = arrays[nearest].start;
      hint.high = hint.low + arrays[nearest].size;
      continue;
    }
    const SharedArray& array = arrays[nearest];
    out_of_bounds(w, a, l, SHARED, write, nearest, array.start, array.size);
  }
}

}  // namespace sim
