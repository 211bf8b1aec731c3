// Each part has a machine of its own: the same memory, and another shadow. Where no part has
// written what another one touched, and none has found anything, they have done what their blocks
// do one after the other. Else memory becomes what it was.
#include "parts.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <thread>

#include "../program/kinds.hpp"
#include "turns.hpp"

namespace sim {
namespace {

constexpr u64 MOST_SHADOW = u64{4} << 30;  // bytes, of all parts
constexpr u64 SHADOW = 5;                  // bytes, about, for one of memory
constexpr u64 MOST_PARTS = 64;

struct Part {
  Machine machine;
  Program program;
  bool ended = false;

  bool silent() const {
    const Machine& m = machine;
    return ended && !(m.out_of_time || m.deadlocked || m.trapped || m.unrepeatable) &&
           m.events.empty();
  }
};
using Parts = std::vector<std::unique_ptr<Part>>;

template <class Count> void clear(std::vector<Count>& counts) {
  std::fill(counts.begin(), counts.end(), Count{});
}

template <class Count> void add(std::vector<Count>& to, const std::vector<Count>& from) {
  static_assert(sizeof(Count) % sizeof(u64) == 0);
  auto sum = reinterpret_cast<u64*>(to.data());
  auto more = reinterpret_cast<const u64*>(from.data());
  for (size_t k = 0; k < to.size() * sizeof(Count) / sizeof(u64); ++k) sum[k] += more[k];
}

std::unique_ptr<Part> part_of(const Machine& m, u64 first, u64 last) {
  auto part = std::make_unique<Part>();
  Program& p = part->program = *m.program;
  clear(p.blocks), clear(p.guarded), clear(p.memory), clear(p.source);
  clear(p.hints), clear(p.source_hints);
  Machine& own = part->machine;
  own.program = &p;
  for (const auto& r : m.regions) {
    auto same = std::make_unique<Region>();
    same->base = r->base, same->size = r->size, same->data = r->data;
    same->all_defined = r->all_defined, same->defined = r->defined;
    own.regions.push_back(std::move(same));
  }
  own.grid = m.grid, own.ntid = m.ntid, own.params = m.params;
  own.dynamic_bytes = m.dynamic_bytes, own.stack_bytes = m.stack_bytes;
  own.resident = m.resident, own.filler = m.filler;
  own.step_limit = m.step_limit - m.steps;
  own.first_block = first, own.last_block = last;
  return part;
}

void run_part(Part& part, double seconds) {
  try {
    part.machine.deadline = cpu_seconds() + seconds;
    part.machine.launch();
    part.ended = true;
  } catch (const std::exception&) {
    part.ended = false;  // there is too little memory
  }
}

bool reads_all(const Region& r) {
  return r.read_unseen || (r.touched && r.lines.empty() && r.stamps.empty());
}

// Whether nobody has written what somebody else touched. all: one region, as each of them has it.
bool apart(const std::vector<const Region*>& all) {
  std::vector<u8> writers;  // per cell
  for (u8 who = 1; const Region* r : all) {
    writers.resize(std::max(writers.size(), r->stamps.size()));
    for (size_t cell = 0; cell < r->stamps.size(); ++cell)
      if (r->stamps[cell].block) {
        if (writers[cell]) return false;
        writers[cell] = who;
      }
    ++who;
  }
  const auto others = [&](size_t from, size_t to, u8 who) {
    const auto end = writers.begin() + std::min(to, writers.size());
    return std::any_of(writers.begin() + std::min(from, writers.size()), end,
                       [&](u8 writer) { return writer && writer != who; });
  };
  for (u8 who = 1; const Region* r : all) {
    if (reads_all(*r) && others(0, writers.size(), who)) return false;
    for (size_t line = 0; line < r->lines.size(); ++line)
      if (r->lines[line].last.block && others(line * LINE, (line + 1) * LINE, who)) return false;
    ++who;
  }
  return true;
}

void join(Machine& m, const Parts& parts) {
  for (const auto& part : parts) {
    const Machine& own = part->machine;
    const Program& p = part->program;
    add(m.program->blocks, p.blocks), add(m.program->guarded, p.guarded);
    add(m.program->memory, p.memory), add(m.program->source, p.source);
    m.steps += own.steps, m.ended += own.ended, m.idle += own.idle;
    m.changes += own.changes, m.stores += own.stores;
    for (size_t k = 0; k < m.regions.size(); ++k) {
      Region &to = *m.regions[k], &from = *own.regions[k];
      to.touched |= from.touched;
      for (size_t cell = 0; cell < to.defined.size(); ++cell)
        to.defined[cell] |= from.defined[cell];
      if (to.stamps.empty()) to.stamps = std::move(from.stamps);
    }
  }
}

}  // namespace

bool may_part(const Machine& m) {
  const Program& p = *m.program;
  const bool whole = !m.sampling && m.last_block == ~u64{0} && m.order == FORWARDS;
  if (jobs < 2 || !whole || m.tracing || m.follows || m.looks_again || m.workspace || p.shares ||
      !m.watching.elements.empty() || m.cluster_size() > 1 || p.has_strong_loads ||
      !p.extern_ends.empty() || !p.patterns.empty())
    return false;
  const auto in_heap = [](const auto& r) { return r->in_heap || r->made_up; };
  return std::none_of(m.regions.begin(), m.regions.end(), in_heap) &&
         std::none_of(p.code.begin(), p.code.end(), [](const Ins& i) {
           return i.flags & SYNCHRONISES && (i.space == GLOBAL || i.space == GENERIC);
         });
}

bool run_in_parts(Machine& m, u64 first, u64 last) {
  u64 bytes = 1;
  for (const auto& r : m.regions) bytes += r->size;
  const u64 count = std::min({u64(jobs), MOST_PARTS, last - first, MOST_SHADOW / (SHADOW * bytes)});
  if (count < 2 || !m.events.empty() || !m.suspended.empty()) return false;
  std::vector<std::vector<u8>> found;
  found.reserve(m.regions.size());
  for (const auto& r : m.regions) found.emplace_back(r->data, r->data + r->size);
  Parts parts;
  for (u64 k = 0; k < count; ++k)
    parts.push_back(
        part_of(m, first + (last - first) * k / count, first + (last - first) * (k + 1) / count));
  {
    std::vector<std::jthread> threads;
    threads.reserve(count);
    for (const auto& part : parts) try {
        threads.emplace_back(run_part, std::ref(*part), m.deadline - cpu_seconds());
      } catch (const std::exception&) {
        part->ended = false;  // there are too many threads
      }
  }
  bool good = std::all_of(parts.begin(), parts.end(), [](const auto& p) { return p->silent(); });
  for (size_t k = 0; k < m.regions.size() && good; ++k) {
    std::vector<const Region*> all{m.regions[k].get()};
    for (const auto& part : parts) all.push_back(part->machine.regions[k].get());
    good = apart(all);
  }
  if (good) {
    join(m, parts);
    return true;
  }
  const u32 cell = 1u << m.program->global_shift;
  for (const auto& part : parts)
    for (size_t k = 0; k < m.regions.size(); ++k) {
      const Region& r = *part->machine.regions[k];
      // Where memory has run out, something may have been written without a stamp.
      if (!part->ended && r.touched) std::copy(found[k].begin(), found[k].end(), r.data);
      for (size_t at = 0; at < r.stamps.size(); ++at)
        if (r.stamps[at].block)
          std::copy_n(&found[k][at * cell], std::min<u64>(cell, found[k].size() - at * cell),
                      r.data + at * cell);
    }
  m.program->shares = true;
  return false;
}

}  // namespace sim
