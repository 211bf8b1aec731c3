// What a request to memory costs: sectors and lines of global memory, wavefronts of shared memory.
#include <algorithm>

#include "cost.hpp"

namespace sim {
namespace {

constexpr u32 LINE_PHASE = 127, SECTOR_PHASE = 31, QUAD_PHASE = 15, WORD_PHASE = 3;

// --- sectors

// Pieces of 2^SHIFT bytes that the lanes touch.
template <int SHIFT> u32 pieces(const Access& a) {
  u64 touched[LANES];
  int n = 0;
  bool sorted = true;
  for (int l = 0; l < LANES; ++l) {
    if (!(a.mask >> l & 1)) continue;
    u64 s = a.at[l] >> SHIFT;
    if (n && touched[n - 1] == s) continue;
    if (n && touched[n - 1] > s) sorted = false;
    touched[n++] = s;
  }
  if (!sorted) {
    std::sort(touched, touched + n);
    n = int(std::unique(touched, touched + n) - touched);
  }
  return n;
}

// --- wavefronts

struct Lanes { int from, to; };

// Every lane wants what the lane beside it wants (`apart` 1), or the one after that (2). Inactive
// lanes do not prevent it.
bool agree(const Access& a, Lanes part, int apart) {
  for (int l = part.from; l < part.to; ++l)
    if (a.mask >> l & a.mask >> (l ^ apart) & 1 && a.at[l] != a.at[l ^ apart]) return false;
  return true;
}

// Of some pairs (lane, lane ^ 1) the second lane takes part alone, of others the first lane does
// too.
bool uneven(const Access& a, Lanes part) {
  bool alone = false, led = false;
  for (int l = part.from; l < part.to; l += 2) {
    const u32 pair = a.mask >> l & 3;
    alone |= pair == 2;
    led |= pair & 1;
  }
  return alone && led;
}

// One pass takes as many wavefronts as its worst bank has distinct words; none without lanes.
u32 conflicts(const Access& a, Lanes part) {
  const u32 per_lane = std::max(1u, a.bytes / 4);
  u64 words[LANES * 8];
  int n = 0;
  for (int l = part.from; l < part.to; ++l)
    if (a.mask >> l & 1)
      for (u32 k = 0; k < per_lane; ++k) words[n++] = a.at[l] / 4 + k;
  std::sort(words, words + n);
  n = int(std::unique(words, words + n) - words);
  u32 load[32] = {}, worst = 0;
  for (int k = 0; k < n; ++k) worst = std::max(worst, ++load[words[k] & 31]);
  return worst;
}

struct Wavefronts { u32 passes, all; };  // passes: what would be left without bank conflicts

// A warp's 4-byte accesses are one pass, 8-byte ones a pass for each half, 16-byte ones a pass for
// each quarter; but the two halves, or the two quarters of a half, go together when their lanes
// agree in pairs. Quarters that go together for the sake of neighbours alone take a second
// wavefront where these pairs are uneven; whether other passes do is not known, and too few
// wavefronts do no harm where they bound the speed. tests/model/test_join.py holds them
// against Nsight Compute's.
Wavefronts wavefronts(const Access& a) {
  const int width = a.bytes <= 4 ? 32 : a.bytes == 8 ? 16 : 8;
  const int together = std::min(32, 2 * width);
  Wavefronts sum{};
  for (int from = 0; from < 32; from += together) {
    const Lanes both{from, from + together};
    const bool beside = agree(a, both, 1), second = agree(a, both, 2), merged = beside || second;
    const bool twice = width == 8 && beside && !second && uneven(a, both);
    for (int start = from; start < both.to; start += merged ? together : width) {
      const u32 worst = conflicts(a, {start, start + (merged ? together : width)});
      sum.passes += worst > 0;
      sum.all += twice ? std::max(worst, 2u) : worst;
    }
  }
  return sum;
}

// --- counting

void keep(Pattern& kept, const Access& a, u64 from) {
  kept.mask = a.mask;
  for (int l = 0; l < LANES; ++l) kept.at[l] = a.mask >> l & 1 ? u32(a.at[l] - from) : 0;
}

void keep_worst(Pattern& kept, const Access& a, u32 extra) {
  if (kept.mask && extra <= kept.extra) return;
  kept.extra = extra;
  keep(kept, a, 0);
}

// The first access of the most lanes, from the start of the lowest one's line.
void keep_fullest(Pattern& kept, const Access& a) {
  if (__builtin_popcount(a.mask) <= __builtin_popcount(kept.mask)) return;
  const auto [lowest, highest] = std::minmax_element(a.at, a.at + LANES);
  if (*highest - *lowest < 1u << 30) keep(kept, a, *lowest & ~u64(LINE_PHASE));
}

// What is kept of the current instruction: of its accesses to shared or to global memory.
Pattern& pattern_of(const Warp& w, bool in_global) {
  auto& patterns = w.program->patterns;
  const size_t count = w.program->code.size();
  if (patterns.empty()) patterns.resize(2 * count);
  return patterns[w.pc + in_global * count];
}

void keep_span(const Warp& w, const Access& a) {
  Pattern& kept = pattern_of(w, true);
  for (int l = 0; l < LANES; ++l) {
    if (!(a.mask >> l & 1)) continue;
    kept.low = kept.high ? std::min(kept.low, a.at[l]) : a.at[l];
    kept.high = std::max(kept.high, a.at[l] + a.bytes);
  }
}

void add(const Warp& w, MemoryCount& c, const Hint& hint, const Access& a) {
  if (w.repeats) return;
  c.requests++;
  c.cost += hint.cost;
  c.cost8 += hint.cost8;
  c.cost16 += hint.cost16;
  c.passes8 += hint.passes8;
  c.passes16 += hint.passes16;
  c.lines += hint.lines;
  c.bytes += u64(__builtin_popcount(a.mask)) * a.bytes;
}

Access widened(Access a, u32 bytes) {
  for (u64& at : a.at) at &= ~u64(bytes - 1);
  a.bytes = bytes;
  return a;
}

// phase_mask: the bits of the first lane's address that the cost depends on, besides the distances.
void remember(Hint& hint, const Access& a, u32 phase_mask, bool complete) {
  const u64 first = a.at[a.first()];
  hint.mask = a.mask;
  hint.phase_mask = phase_mask;
  hint.phase = u32(first & phase_mask);
  const auto [lowest, highest] = std::minmax_element(a.at, a.at + LANES);
  for (int l = 0; l < LANES; ++l) hint.delta[l] = a.at[l] - first;
  hint.below = first - *lowest;
  hint.above = *highest - first;
  hint.aligned = complete;
}

void count_sectors(Warp& w, const Access& a, Hint& hint, MemoryCount& c) {
  if (!a.mask) return;
  const bool sampling = w.block->machine->sampling;
  hint.cost = pieces<5>(a);
  hint.cost8 = hint.cost16 = hint.passes8 = hint.passes16 = 0;
  if (sampling) {
    hint.cost8 = pieces<5>(widened(a, 8));
    hint.cost16 = pieces<5>(widened(a, 16));
    hint.lines = pieces<7>(a);
    keep_fullest(pattern_of(w, true), a);
    keep_span(w, a);
  }
  remember(hint, a, sampling ? LINE_PHASE : SECTOR_PHASE, a.mask == w.exec);
  add(w, c, hint, a);
}

}  // namespace

bool familiar(Warp& w, const Access& a, u8 space) {
  const Hint& hint = hint_of(w, space);
  if (hint.mask != a.mask || !hint.aligned) return false;
  const u64 first = a.at[a.first()];
  u64 differs = 0;
  for (int l = 0; l < LANES; ++l) differs |= (a.at[l] - first) ^ hint.delta[l];
  if (differs || (first & hint.phase_mask) != hint.phase || first & (a.bytes - 1)) return false;
  if (first < hint.low || first - hint.low < hint.below) return false;
  if (first > hint.high || hint.high - first < hint.above ||
      hint.high - first - hint.above < a.bytes)
    return false;
  add(w, w.program->memory[w.pc], hint, a);
  if (space != SHARED && w.block->machine->sampling) keep_span(w, a);
  return true;
}

u32 shared_wavefronts(const u32* at, u32 mask, u32 bytes) {
  Access a{};
  a.mask = mask, a.bytes = bytes;
  std::copy_n(at, LANES, a.at);
  return wavefronts(a).all;
}

void count_global(Warp& w, const Access& a) {
  count_sectors(w, a, w.program->hints[w.pc], w.program->memory[w.pc]);
}

void count_source(Warp& w, const Access& a) {
  count_sectors(w, a, w.program->source_hints[w.pc], w.program->source[w.pc]);
}

void count_zeros(Warp& w) { w.program->source[w.pc].zeros += w.program->hints[w.pc].cost; }

void count_shared(Warp& w, const Access& a) {
  if (!a.mask) return;
  Hint& hint = w.program->hints[w.pc];
  const Wavefronts own = wavefronts(a);
  hint.cost = own.all;
  hint.cost8 = hint.cost16 = hint.passes8 = hint.passes16 = hint.lines = 0;
  u32 phase_mask = WORD_PHASE;
  if (w.block->machine->sampling) {
    const Wavefronts halves = wavefronts(widened(a, 8)), quarters = wavefronts(widened(a, 16));
    hint.cost8 = halves.all;
    hint.passes8 = halves.passes;
    hint.cost16 = quarters.all;
    hint.passes16 = quarters.passes;
    const u32 all = own.all + halves.all + quarters.all;
    keep_worst(pattern_of(w, false), a, all - own.passes - halves.passes - quarters.passes);
    // Lanes whole quads apart move to the next quad together, whatever their place in it.
    for (int l = 0; l < LANES; ++l)
      if (a.mask >> l & 1 && (a.at[l] ^ a.at[a.first()]) & QUAD_PHASE) phase_mask = QUAD_PHASE;
  }
  remember(hint, a, phase_mask, a.mask == w.exec);
  add(w, w.program->memory[w.pc], hint, a);
}

}  // namespace sim
