#include "watched.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <string_view>

#include "../program/kinds.hpp"
#include "../program/operations.hpp"

namespace sim {
namespace {

constexpr u32 INPUTS = std::size(Definition{}.values);
constexpr int WIDTH_AT = 60;  // of a source
constexpr u64 WINDOWS[SPACES] = {0, SHARED_WINDOW, LOCAL_WINDOW, u64{3} << 56, 0, 0};

std::vector<Definition>& definitions_of(Warp& w) {
  auto& found = w.home->machine->watching.definitions[&w];
  found.resize(size_t(w.program->slots) * LANES);
  return found;
}

// Calls `f(place, slot, bytes)` for the registers that an instruction writes, or for those whose
// values it reads; addresses are left out.
template <class F> void each_register(const Program& p, u32 pc, bool outputs, F f) {
  const Ins& i = p.code[pc];
  const std::string_view shape = p.named[pc]->shape;
  const bool pooled = shape[0] == '*';
  const i32* o = pooled ? i.x + i.pooled() : i.o;
  bool output = true;
  for (u32 place = 0; const char kind : shape.substr(pooled)) {
    if (kind == '>') {
      output = false;
      continue;
    }
    const char any = char(kind | 32);  // in lower case
    const u32 bytes = any == 'n' ? 4 : any == 'w' ? 8 : any == 'v' ? i.dwidth : 0;
    if (bytes && *o >= 0 && output == outputs) f(place, *o, bytes);
    o += kind == 'a' ? 2 : 1;
    ++place;
  }
}

template <class F> void each_lane(u32 mask, F f) {
  for (; mask; mask &= mask - 1) f(__builtin_ctz(mask));
}

u64 in_register(Warp& w, i32 slot, u32 bytes, int lane) {
  return bytes == 8 ? lanes<u64>(w, slot)[lane] : lanes<u32>(w, slot)[lane];
}

// Where a lane's access begins: a generic address.
u64 place_of(Warp& w, const Ins& i, int lane) {
  u64 at = u64(i.offset());
  if (i.base() >= 0) at += in_register(w, i.base(), u32(i.base_bytes()), lane);
  if (i.base_bytes() == 4) at = u32(at);
  return i.space == GENERIC ? at : (at & OFFSET_MASK) | WINDOWS[i.space];
}
// The same as Write's sources have it.
u64 source_of(Warp& w, const Ins& i, int lane) {
  return place_of(w, i, lane) | u64(std::countr_zero(i.width)) << WIDTH_AT;
}

void add_input(Definition& made, u64 value, const Definition& from) {
  made.values[made.inputs] = value;
  made.sources[made.inputs++] = from.loaded ? from.sources[0] : 0;
}

// How what an element holds `now` came about, since a lane has just written to `address`.
Definition definition_of(Warp& w, int lane, u64 address, u64 before, u64 now) {
  const Ins& i = w.program->code[w.pc];
  const std::string_view name = w.program->named[w.pc]->name;
  const auto& known = definitions_of(w);
  if (name == "st") {
    const u64 element = (address - (place_of(w, i, lane) & OFFSET_MASK)) / i.width;
    return known[size_t(i.element(int(element))) * LANES + lane];
  }
  Definition made{w.pc};
  if (name == "cp.async.bulk.out") {  // its first operand is where the bytes go
    const u64 ahead = address - lanes<u64>(w, i.o[0])[lane] - u64(i64(i.o[3]));
    add_input(made, now, {.sources = {place_of(w, i, lane) + ahead}, .loaded = true});
  }
  if (!name.starts_with("atom.")) return made;
  add_input(made, before, {.sources = {source_of(w, i, lane)}, .loaded = true});
  each_register(*w.program, w.pc, false, [&](u32, i32 slot, u32 bytes) {
    add_input(made, in_register(w, slot, bytes, lane), known[size_t(slot) * LANES + lane]);
  });
  return made;
}

void look_again(WatchedElement& e, const Region& r) {
  for (u32 k = 0; k < std::size(e.last); ++k)
    if (const u64 at = e.base + (e.index << k); within(at, 1u << k, r.base, r.size))
      std::memcpy(&e.last[k], r.at(at), 1u << k);
}

}  // namespace

Step::Step(Warp& w, const Ins& i) : known_(definitions_of(w)), pc_(w.pc), exec_(w.exec) {
  const Named& named = *w.program->named[pc_];
  if (named.shape[0] == '>') return;
  loads_ = is_load(i) || named.name.starts_with("atom.");
  each_lane(exec_, [&](int l) {
    made_[l].pc = pc_;
    if (loads_) made_[l].sources[0] = source_of(w, i, l);
    made_[l].inputs = made_[l].loaded = loads_;
  });
  if (loads_) return;
  const bool copies = named.name.starts_with("mov") || named.name.starts_with("cvt");
  u32 inputs = 0;
  each_register(*w.program, pc_, false, [&](u32, i32, u32) { ++inputs; });
  if (inputs > INPUTS) return;
  each_register(*w.program, pc_, false, [&](u32, i32 slot, u32 bytes) {
    each_lane(exec_, [&](int l) {
      const Definition& from = known_[size_t(slot) * LANES + l];
      if (copies) made_[l] = from;
      else add_input(made_[l], in_register(w, slot, bytes, l), from);
    });
  });
}

void Step::keep(Warp& w) {
  each_register(*w.program, pc_, true, [&](u32 place, i32 slot, u32 bytes) {
    each_lane(exec_, [&](int l) {
      Definition& now = known_[size_t(slot) * LANES + l];
      now = made_[l];
      if (!loads_) return;
      now.values[0] = in_register(w, slot, bytes, l);
      now.sources[0] += u64(place) * w.program->code[pc_].width;
    });
  });
}

void begin_watch(Machine& m) {
  m.watching.definitions.clear();
  m.watching.writes.clear();
  m.watching.left_out = 0;
  for (const auto& r : m.regions) r->watched = false;
  for (WatchedElement& e : m.watching.elements) {
    i64 index = -1;
    Region* const r = m.locate(e.base, index);
    if (!r) continue;
    r->watched = true;
    look_again(e, *r);
  }
}

void note_write(Warp& w, int lane, const Region& r, u64 address, u32 bytes) {
  const Machine& m = *w.home->machine;
  Watching& watching = w.home->machine->watching;
  for (WatchedElement& e : watching.elements) {
    if (e.base != r.base) continue;
    if (!is_bulk_store(w.program->code[w.pc])) e.usual = bytes;
    const u64 width = e.width ? e.width : e.usual, at = e.base + e.index * width;
    const u64 &last = e.last[std::countr_zero(width)], before = last;
    look_again(e, r);
    if (at + width <= address || address + bytes <= at || !within(at, width, r.base, r.size))
      continue;
    if (last == before && w.program->named[w.pc]->name.starts_with("atom.cas")) continue;
    if (watching.writes.size() == watching.most) {
      ++watching.left_out;
      continue;
    }
    const Definition made = definition_of(w, lane, std::max(at, address), before, last);
    Write row{};
    row.element = u32(&e - watching.elements.data());
    row.pc = w.pc;
    row.width = u32(width);
    row.unwritten = !r.all_defined && !r.defined[(at - r.base) >> w.program->global_shift];
    row.definition = made.pc;
    row.inputs = made.inputs;
    row.before = before;
    row.after = last;
    std::copy(std::begin(made.values), std::end(made.values), row.values);
    std::copy(std::begin(made.sources), std::end(made.sources), row.sources);
    row.block = w.home->id;
    row.thread = thread_at(m, w.index * LANES + u32(lane));
    watching.writes.push_back(row);
  }
}

}  // namespace sim
