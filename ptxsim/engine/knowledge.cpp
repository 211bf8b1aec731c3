#include "knowledge.hpp"

#include <algorithm>

namespace sim {

// One entry per block, ascending: its number, then the clocks of its warps.
struct Knowledge {
  std::vector<u32> entries;
  u32 stride = 0;           // numbers of one entry
  bool everything = false;  // more than is kept: all is taken to be ordered, so as to accuse nobody

  const u32* find(u32 block) const {
    size_t low = 0, high = entries.size() / stride;
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (entries[middle * stride] < block) low = middle + 1;
      else high = middle;
    }
    const size_t at = low * stride;
    return at < entries.size() && entries[at] == block ? &entries[at] : nullptr;
  }
};

namespace {

constexpr size_t MOST_ENTRIES = 1 << 15;  // numbers that one Knowledge holds
constexpr size_t MOST_FLAGS = 1 << 18;    // of a launch, or of a block's shared memory

bool covers(const Knowledge& all, const Knowledge& some) {
  if (all.everything || some.everything) return all.everything;
  if (all.entries.size() < some.entries.size()) return false;
  for (size_t at = 0; at < some.entries.size(); at += some.stride) {
    const u32* entry = all.find(some.entries[at]);
    if (!entry) return false;
    for (u32 k = 1; k < some.stride; ++k)
      if (entry[k] < some.entries[at + k]) return false;
  }
  return true;
}

Known join(const Known& a, const Known& b) {
  if (!b || a == b) return a;
  if (!a || covers(*b, *a)) return b;
  if (covers(*a, *b)) return a;
  auto both = std::make_shared<Knowledge>();
  const u32 stride = both->stride = a->stride;
  both->entries.reserve(a->entries.size() + b->entries.size());
  auto one = a->entries.begin(), other = b->entries.begin();
  while (one != a->entries.end() || other != b->entries.end()) {
    const bool mine = other == b->entries.end() || (one != a->entries.end() && *one < *other);
    const bool same = !mine && one != a->entries.end() && *one == *other;
    auto& from = mine ? one : other;
    both->entries.insert(both->entries.end(), from, from + stride);
    from += stride;
    if (!same) continue;
    u32* entry = both->entries.data() + both->entries.size() - stride;
    for (u32 k = 1; k < stride; ++k) entry[k] = std::max(entry[k], one[k]);
    one += stride;
  }
  if (both->entries.size() > MOST_ENTRIES) {
    both->entries.clear();
    both->everything = true;
  }
  return both;
}

// What a reader of a flag that this warp sets learns.
Known told(const Warp& w) {
  auto own = std::make_shared<Knowledge>();
  own->stride = 1 + u32(w.home->warps.size());
  own->entries.push_back(w.home->linear);
  const Clocks clocks = w.now_for_others();
  own->entries.insert(own->entries.end(), clocks.warps, clocks.warps + own->stride - 1);
  return join(clocks.others, own);
}

}  // namespace

void Clocks::join(const Clocks& more) {
  for (u32 k = 0; k < 32; ++k) warps[k] = std::max(warps[k], more.warps[k]);
  for (u32 k = 0; k < 32; ++k) fenced[k] = std::max(fenced[k], more.fenced[k]);
  others = sim::join(others, more.others);
}

void Signal::read(u64 address) {
  // A warp that waits in grid.sync() learns of the blocks that came before it opened, not of later
  // ones.
  const Machine& m = *warp.block->machine;
  const auto found = flags.find(address == m.counter() ? m.workspace : address);
  if (found == flags.end() || found->second == warp.known.others) return;
  const Knowledge& said = *found->second;
  Clocks clocks;
  clocks.others = found->second;
  const u32* own = said.everything ? nullptr : said.find(warp.home->linear);
  for (u32 k = 0; k < warp.home->warps.size(); ++k)
    clocks.warps[k] = own ? own[1 + k] : said.everything ? warp.home->warps[k].known.warps[k] : 0;
  warp.learn(clocks);
}

void Signal::raise(u64 address) {
  if (!fenced) return;
  if (!raised) raised = told(warp);
  if (flags.size() < MOST_FLAGS || flags.count(address)) {
    Known& flag = flags[address];
    flag = join(flag, raised);
  }
}

void Signal::open() {
  const Machine& m = *warp.block->machine;
  flags[m.workspace] = flags[m.counter()];
}

bool ordered_elsewhere(const Warp& w, u32 block, u32 who) {
  if (w.block->machine->flags.size() >= MOST_FLAGS) return true;
  if (!w.known.others) return false;
  if (w.known.others->everything) return true;
  const u32* entry = w.known.others->find(block);
  return entry && (who >> 10) <= entry[1 + (who & 1023) / LANES];
}

}  // namespace sim
