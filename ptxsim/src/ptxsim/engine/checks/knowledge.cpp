
#include "knowledge.hpp"

#include <algorithm>

namespace sim {

// One entry per block, ascending: its number, the clocks of its warps, then for each of its
// warpgroups how many groups of wgmma have ended, and where the async proxy reads what other blocks
// wrote, what a fence.proxy.async has shown of its warps.
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

Known both(const Knowledge& a, const Knowledge& b) {
  auto both = std::make_shared<Knowledge>();
  const u32 stride = both->stride = a.stride;
  both->entries.reserve(a.entries.size() + b.entries.size());
  auto one = a.entries.begin(), other = b.entries.begin();
  while (one != a.entries.end() || other != b.entries.end()) {
    const bool mine = other == b.entries.end() || (one != a.entries.end() && *one < *other);
    const bool same = !mine && one != a.entries.end() && *one == *other;
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

u32 warpgroups(const Block& b) {
  return (u32(b.warps.size()) + WARPS_OF_A_GROUP - 1) / WARPS_OF_A_GROUP;
}

bool tells_of_proxy(const Block& b) {
  return b.machine->cluster_size() > 1 || b.program->has_bulk_copies;
}

// Where in an entry stands what of its warps the async proxy sees.
size_t of_proxy(const Block& b) { return 1 + b.warps.size() + warpgroups(b); }

// What `clocks` holds of the block's own warps, as others keep it. shown: to the async proxy.
std::shared_ptr<Knowledge> of_block(const Block& b, const Moments& clocks, const u32* shown_of) {
  auto own = std::make_shared<Knowledge>();
  const u32 warps = u32(b.warps.size()), groups = warpgroups(b),
            shown = tells_of_proxy(b) ? warps : 0;
  own->stride = 1 + warps + groups + shown;
  own->entries.reserve(own->stride);
  own->entries.push_back(b.linear);
  own->entries.insert(own->entries.end(), clocks.warps, clocks.warps + warps);
  own->entries.insert(own->entries.end(), clocks.products, clocks.products + groups);
  own->entries.insert(own->entries.end(), shown_of, shown_of + shown);
  return own;
}

bool knows(const Known& known, const Region::Stamp& access) {
  if (!known) return false;
  if (known->everything) return true;
  const u32* entry = known->find(access.block - 1);
  return entry && (access.who >> 10) <= entry[1 + (access.who & 1023) / LANES];
}

// Whether some lanes of a warp of the cluster told of themselves, and not of the access.
bool left_out(const Warp& w, const Knowledge& known, const Region::Stamp& access) {
  if (!w.home->cluster || known.everything) return false;
  const u32 warp = (access.who & 1023) / LANES, *entry = known.find(access.block - 1);
  for (const Block* b : w.home->cluster->blocks)
    if (b->linear == access.block - 1) return b->warps[warp].left_out(entry[1 + warp], access.who);
  return false;
}

void leave(Flags& flags, u64 address, const Known& told) {
  if (flags.size() >= MOST_FLAGS && !flags.count(address)) return;
  Known& flag = flags[address];
  flag = join(flag, told);
}

// What the executing lanes know of other blocks.
Known others_of(const Warp& w) {
  return w.knows_more() ? join(w.known.others, w.some.others) : w.known.others;
}

bool too_many_flags(const Machine& m) { return m.flags.size() >= MOST_FLAGS; }

}  // namespace

Known join(const Known& a, const Known& b) {
  if (!b || a == b) return a;
  if (!a || covers(*b, *a)) return b;
  if (covers(*a, *b)) return a;
  return both(*a, *b);
}

Known told(const Block& b, const Clocks& clocks) {
  return join(clocks.others, of_block(b, clocks, clocks.fenced));
}

Known told(const Warp& w) { return told(*w.home, w.now_for_others()); }

Known told(const Warp& w, const Moments& covered) {
  return join(covered.others, of_block(*w.home, covered, w.known.fenced));
}

Known moment(const Warp& w) {
  Clocks clocks;
  clocks.warps[w.index] = w.clock();
  return of_block(*w.home, clocks, clocks.fenced);
}

Clocks heard(const Known& said, const Block& listener) {
  Clocks clocks;
  clocks.others = said;
  if (!said) return clocks;
  const u32* own = said->everything ? nullptr : said->find(listener.linear);
  for (u32 k = 0; k < listener.warps.size(); ++k)
    clocks.warps[k] = own ? own[1 + k] : said->everything ? listener.warps[k].known.warps[k] : 0;
  for (u32 k = 0; k < warpgroups(listener); ++k)
    clocks.products[k] = own ? own[1 + listener.warps.size() + k] : said->everything ? ~0u : 0;
  for (u32 k = 0; k < listener.warps.size() && tells_of_proxy(listener); ++k)
    clocks.fenced[k] = own ? own[of_proxy(listener) + k] : clocks.warps[k];
  return clocks;
}

void Moments::join_own(const Moments& more) {
  for (u32 k = 0; k < 32; ++k) warps[k] = std::max(warps[k], more.warps[k]);
  for (u32 k = 0; k < WARPGROUPS; ++k) products[k] = std::max(products[k], more.products[k]);
}

void Moments::join(const Moments& more) {
  join_own(more);
  others = sim::join(others, more.others);
}

bool Moments::none() const {
  return !others && std::all_of(warps, warps + 32, [](u32 moment) { return !moment; });
}

void Clocks::join(const Clocks& more) {
  Moments::join(more);
  for (u32 k = 0; k < 32; ++k) fenced[k] = std::max(fenced[k], more.fenced[k]);
  released.join(more.released);
  published.join(more.published);
  seen.join(more.seen);
}

void Signal::ask(u64 address) { learn(address, order & ACQUIRES ? By::acquire : By::flag); }

// A block that counts itself by an atomic operation, behind a fence, and finds that it is the last
// goes on without another: so do NVIDIA's samples. To change nothing is to look at a flag.
void Signal::ask_and_change(u64 address, bool same) {
  const Moments& covered = within ? warp.known.released : warp.known.published;
  const bool counts = covered.warps[warp.index] && !same;
  learn(address, order & ACQUIRES || counts ? By::acquire : By::flag);
}

void Signal::take_lock(u64 address) { learn(address, order & ACQUIRES ? By::acquire : By::lock); }

void Signal::learn(u64 address, By by) {
  const Machine& m = *warp.block->machine;
  const Flags& own = warp.block->flags;
  if (shared || !own.empty()) {
    const auto found = own.find(address);
    if (found != own.end()) learn(found->second, by, false);
  }
  if (shared) return;
  // A warp that waits in grid.sync() learns of the blocks that came before it opened, not of later
  // ones.
  const auto found = m.flags.find(address == m.counter() ? m.workspace : address);
  if (found != m.flags.end()) learn(found->second, by, within);
}

void Signal::learn(const Known& told, By by, bool of_block) {
  Clocks& known = warp.whole() ? warp.known : warp.some;
  Moments& kept = by == By::acquire ? known : by == By::flag ? warp.known.seen : warp.locked;
  const bool all_know = &kept != &warp.some || !(warp.exec & ~warp.some_lanes);
  if (told == kept.others && all_know) return;
  Clocks clocks = heard(told, *warp.home);
  if (of_block) clocks.others = nullptr;
  if (by == By::acquire) warp.learn(clocks, warp.exec);
  else kept.join(clocks);
}

Known Signal::content(bool of_block) const {
  if (order & RELEASES) return told(warp);
  const Moments& covered = of_block ? warp.known.released : warp.known.published;
  return covered.none() ? nullptr : told(warp, covered);
}

void Signal::raise(u64 address) {
  if (!tried) {
    const Clocks& known = warp.known;
    const bool more =
        !std::equal(known.released.warps, known.released.warps + 32, known.published.warps);
    if (!within) raised = content(false);
    if (within || (more && !shared && !(order & RELEASES))) raised_within = content(true);
  }
  tried = true;
  if (raised) leave(shared ? warp.block->flags : warp.block->machine->flags, address, raised);
  if (raised_within) leave(warp.block->flags, address, raised_within);
}

void Signal::open() {
  Machine& m = *warp.block->machine;
  m.flags[m.workspace] = m.flags[m.counter()];
}

bool ordered_elsewhere(const Warp& w, int lane, const Region::Stamp& access) {
  if (too_many_flags(*w.block->machine)) return true;
  const auto ordered = [&](const Known& known) {
    return knows(known, access) && !left_out(w, *known, access);
  };
  return ordered(w.known.others) || (w.some_lanes >> lane & 1 && ordered(w.some.others));
}

bool told_by_flag(const Warp& w, const Region::Stamp& access) {
  return access.block == w.home->linear + 1 ? w.ordered_by_flag(access.who)
                                            : knows(w.known.seen.others, access);
}

bool told_by_lock(const Warp& w, const Region::Stamp& access) {
  if (access.block != w.home->linear + 1) return knows(w.locked.others, access);
  const u32 warp = (access.who & 1023) / LANES;
  return warp != w.index && (access.who >> 10) <= w.locked.warps[warp];
}

bool wgmma_ended_elsewhere(const Warp& w, const Block& block, u32 who) {
  const Known known = others_of(w);
  if (too_many_flags(*w.block->machine) || (known && known->everything)) return true;
  const u32* entry = known ? known->find(block.linear) : nullptr;
  const size_t group = (who & 1023) / LANES / WARPS_OF_A_GROUP;
  return entry && (who >> 10) <= entry[1 + block.warps.size() + group];
}

Known shown_to_proxy(const Known& known, const Block& b) {
  if (!known || known->everything || !tells_of_proxy(b)) return known;
  auto shown = std::make_shared<Knowledge>(*known);
  for (size_t at = 0; at < shown->entries.size(); at += shown->stride)
    for (size_t k = 0; k < b.warps.size(); ++k)
      shown->entries[at + of_proxy(b) + k] = shown->entries[at + 1 + k];
  return shown;
}

bool proxy_sees(const Warp& w, const Region::Stamp& write) {
  if (write.block == w.home->linear + 1)
    return (write.who >> 10) <= w.fenced((write.who & 1023) / LANES);
  const Known known = others_of(w);
  if (too_many_flags(*w.block->machine) || !known || known->everything) return true;
  const u32* entry = known->find(write.block - 1);
  return !entry || (write.who >> 10) <= entry[of_proxy(*w.home) + (write.who & 1023) / LANES];
}

bool heard_of(const Warp& w, u32 block) {
  if (too_many_flags(*w.block->machine)) return true;
  const Known known = others_of(w);
  return known && (known->everything || known->find(block));
}

bool ordered_before_exit(const Block& b, const Region::Stamp& access) {
  return too_many_flags(*b.machine) || knows(b.exited.others, access);
}

}  // namespace sim
