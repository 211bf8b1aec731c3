#include "repeats.hpp"

#include <algorithm>
#include <utility>

namespace sim {
namespace {

constexpr size_t MOST_MEMOS = 4096;
constexpr u64 MOST_BYTES = u64{1} << 30;  // of all of them together
constexpr u64 MOST_DOUBLINGS = 20;        // of the wait

bool as_found(const Memo::Part& part) {
  const Region& r = *part.region;
  return r.size == part.found.size() && r.defined == part.found_defined &&
         std::equal(part.found.begin(), part.found.end(), r.data);
}

void forget(Memos& memos, Memo& memo) {
  if (memo.whole) memos.bytes -= memo.bytes();
  memo.forget();
}

}  // namespace

u64 Memo::bytes() const {
  u64 sum = 0;
  for (const Part& each : parts)
    sum +=
        each.found.size() + each.found_defined.size() + each.left.size() + each.left_defined.size();
  return sum;
}

void Memo::forget() {
  whole = false;
  for (Part& part : parts) part = {part.region, {}, {}, {}, {}};
}

bool recall(Machine& m, const std::string& asked) {
  Memos& memos = m.memos;
  if (memos.all.size() >= MOST_MEMOS) memos = {};
  Memo& memo = memos.all[asked];
  memos.next = nullptr;
  if (memo.whole && std::all_of(memo.parts.begin(), memo.parts.end(), as_found)) {
    for (const Memo::Part& part : memo.parts) {
      if (part.left.empty()) continue;
      std::copy(part.left.begin(), part.left.end(), part.region->data);
      part.region->defined = part.left_defined;
    }
    memo.misses = 0;
    return true;
  }
  if (memo.whole) {
    memo.wait = (u64{1} << std::min(memo.misses++, MOST_DOUBLINGS)) - 1;
    forget(memos, memo);
  }
  memos.next = &memo;
  return false;
}

bool begin_memo(Machine& m, Memo& memo) {
  m.unrepeatable = false;
  if (memo.wait) {
    --memo.wait;
    return false;
  }
  if (memo.parts.empty()) return false;
  u64 bytes = 0;
  for (const Memo::Part& each : memo.parts)
    bytes += 2 * (each.region->size + each.region->defined.size());
  if (bytes > MOST_BYTES) return false;
  for (auto& [_, other] : m.memos.all)
    if (m.memos.bytes + bytes > MOST_BYTES) forget(m.memos, other);
  for (Memo::Part& part : memo.parts) {
    const Region& r = *part.region;
    part.found.assign(r.data, r.data + r.size);
    part.found_defined = r.defined;
  }
  return true;
}

void end_memo(Machine& m, Memo& memo, bool kept) {
  auto ended = std::exchange(memo.parts, {});
  if (m.out_of_time || m.deadlocked || m.trapped || m.unrepeatable || !m.events.empty()) return;
  std::vector<Memo::Part> parts;
  for (auto& r : m.regions) {
    // The barrier of the grid is not what the launch finds: it is made anew.
    if (!r->touched || (m.workspace && r->base == m.workspace)) continue;
    if (r->in_heap) return;
    parts.push_back({r.get(), {}, {}, {}, {}});
  }
  memo.parts = std::move(parts);
  const auto same = [](const Memo::Part& a, const Memo::Part& b) { return a.region == b.region; };
  if (!kept || !std::equal(ended.begin(), ended.end(), memo.parts.begin(), memo.parts.end(), same))
    return;
  for (size_t k = 0; k < ended.size(); ++k) {
    Memo::Part& part = memo.parts[k] = std::move(ended[k]);
    Region& r = *part.region;
    if (as_found(part)) continue;
    if (r.stamps.empty()) return memo.forget();  // host code has written there meanwhile
    part.left.assign(r.data, r.data + r.size);
    part.left_defined = r.defined;
  }
  memo.whole = true;
  m.memos.bytes += memo.bytes();
}

}  // namespace sim
