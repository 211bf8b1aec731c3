// malloc and free in kernels.
//
// Each allocation is a region, at an address that nothing had before. So what goes past its end, or
// comes after free, meets no other one.
#include <algorithm>

#include "../checks/global_races.hpp"
#include "../checks/undefined.hpp"
#include "../limits.hpp"
#include "../machine/machine.hpp"
#include "../program/operations.hpp"

namespace sim {
namespace {

constexpr u64 ALIGNMENT = 16, GAP = 4096;
constexpr u64 MAX_ALIGNMENT = 1 << 20;

u64 room_of(u64 bytes) { return (bytes + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

u8* lane_bytes(Warp& w, int lane, i32 at) {
  return w.local.data() + u64(lane) * w.program->local_bytes + at;
}

u64 number_at(Warp& w, int lane, i32 at) {
  u64 value;
  std::memcpy(&value, lane_bytes(w, lane, at), sizeof value);
  return value;
}

void set_result(Warp& w, int lane, i32 at, u64 value) {
  std::memcpy(lane_bytes(w, lane, at), &value, sizeof value);
  set_defined(w, lane_bytes(w, lane, at), sizeof value);
}

// Forgets what was freed. What was reported of it keeps its address and loses its name.
void shorten(Warp& w) {
  Machine& m = *w.block->machine;
  const auto freed = [](const auto& r) { return r->freed.block != 0; };
  if (size_t(std::count_if(m.regions.begin(), m.regions.end(), freed)) <= MAX_FREED) return;
  std::vector<i64> place;
  place.reserve(m.regions.size());
  i64 next = 0;
  for (const auto& r : m.regions) place.push_back(freed(r) ? -1 : next++);
  std::erase_if(m.regions, freed);
  for (Event& e : m.events)
    if (e.region >= 0 && e.space != SHARED && size_t(e.region) < place.size())
      e.region = place[e.region];
  for (Hint& hint : w.program->hints) hint = Hint{};
}

// Returns its address, or 0 where there is no room.
u64 allocate(Warp& w, u64 bytes, u64 alignment) {
  Machine& m = *w.block->machine;
  m.unrepeatable = true;
  if (bytes > HEAP_BYTES || m.heap_used + room_of(bytes) > HEAP_BYTES) return 0;
  if (m.regions.size() % MAX_FREED == 0) shorten(w);
  auto r = std::make_unique<Region>();
  if (!m.regions.empty()) {
    const Region& last = *m.regions.back();
    m.heap_next = std::max(m.heap_next, last.base + std::max(last.size, last.given) + GAP);
  }
  r->base = (m.heap_next + alignment - 1) / alignment * alignment;
  r->size = r->given = bytes;
  r->in_heap = true;
  r->own.resize(bytes);
  for (u64 at = 0; at < bytes; ++at) r->own[at] = u8(m.filler >> at % 4 * 8);
  r->data = r->own.data();
  r->all_defined = m.sampling;
  if (!m.sampling) r->defined.assign((bytes >> w.program->global_shift) + 1, 0);
  m.heap_used += room_of(bytes);
  m.heap_next = r->base + bytes;
  m.changes++;
  const u64 base = r->base;
  m.regions.push_back(std::move(r));
  return base;
}

// Where in lane-private memory the number of bytes, their alignment and the result lie.
struct MallocOperands { i32 bytes, result; };
struct AlignedOperands { i32 bytes, alignment, result; };

Flow malloc(Warp& w, const Ins& i) {
  const auto o = operands<MallocOperands>(i);
  for (int l = 0; l < LANES; ++l) {
    if (!(w.exec >> l & 1)) continue;
    const u64 address = allocate(w, number_at(w, l, o.bytes), ALIGNMENT);
    set_result(w, l, o.result, address);
  }
  return Flow::next;
}

Flow aligned_malloc(Warp& w, const Ins& i) {
  const auto o = operands<AlignedOperands>(i);
  for (int l = 0; l < LANES; ++l) {
    if (!(w.exec >> l & 1)) continue;
    const u64 alignment = std::max(number_at(w, l, o.alignment), ALIGNMENT);
    const bool power = !(alignment & (alignment - 1)) && alignment <= MAX_ALIGNMENT;
    const u64 address = power ? allocate(w, number_at(w, l, o.bytes), alignment) : 0;
    set_result(w, l, o.result, address);
  }
  return Flow::next;
}

void release(Warp& w, int lane, u64 address) {
  Machine& m = *w.block->machine;
  i64 index = -1;
  Region* r = m.find(address, index);
  if (!r || !r->in_heap || r->base != address || r->freed.block) {
    const bool twice = r && r->base == address && r->freed.block;
    Event e = event_at(w, twice ? FREED_TWICE : FREED_WRONGLY, lane);
    e.address = address;
    e.space = GLOBAL;
    e.region = r && within(address, 1, r->base, r->size) ? index : -1;
    if (twice) e.region = index;
    e.region_start = r ? r->base : 0;
    e.region_size = r ? r->size : 0;
    return m.report(e);
  }
  // Whoever still uses it must come before.
  global_write(w, lane, *r, index, address, u32(r->size), false, false, true);
  m.heap_used -= room_of(r->given);
  m.changes++;
  r->size = 0;
  std::vector<u8>().swap(r->own);
  r->data = nullptr;
  r->freed = {w.block->linear + 1, w.epoch(lane), w.pc};
  for (Hint& hint : w.program->hints)
    if (hint.region == index) hint = Hint{};
}

struct FreeOperands { i32 address; };

Flow free(Warp& w, const Ins& i) {
  const auto o = operands<FreeOperands>(i);
  for (int l = 0; l < LANES; ++l) {
    if (!(w.exec >> l & 1)) continue;
    if (const u64 address = number_at(w, l, o.address)) release(w, l, address);
  }
  return Flow::next;
}

template <int count> bool in_private(const Program& p, const Ins& i) {
  return std::all_of(i.o, i.o + count,
                     [&](i32 at) { return at >= 0 && within(u64(at), 8, p.local_bytes); });
}

}  // namespace

void add_heap(Table& t) {
  add(t, "call.malloc", malloc, ">ii", in_private<2>);
  add(t, "call.__cuda_syscall_aligned_malloc", aligned_malloc, ">iii", in_private<3>);
  add(t, "call.free", free, ">ii", in_private<2>);
}

}  // namespace sim
