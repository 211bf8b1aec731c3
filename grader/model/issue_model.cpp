// One multiprocessor, cycle by cycle: see issue_model.py, which mirrors the structures.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace {

using Cycle = int64_t;
constexpr Cycle NEVER = std::numeric_limits<Cycle>::max() / 2;
constexpr int BOARDS = 6;

enum Unit { NONE, FP32, INTEGER, SHARED, LINES, BARRIER, MULTIPLY, TENSOR };
enum Why { STALL, PIPE, BANKS, SHARED_LOAD, GLOBAL_LOAD, AT_BARRIER, WHYS };

struct Step {
  int32_t unit, stall, waits, sets, frees, latency, even, odd, copies, fence, board, left;
  double work, sectors;
};

struct Machine {
  int32_t warps, blocks, schedulers, fp32_cycles, integer_cycles, access_cycles, arrival_cycles,
      release_cycles, read_cycles, far_latency, apart;
  double sector_cycles;
};

struct Totals {
  int64_t cycles, issued;
  int64_t idle[WHYS];    // cycles of schedulers in which no warp can go on, by what the first to
                         // go on waits for
  int64_t waited[WHYS];  // cycles of warps
};

struct Wait {
  Cycle until = 0;
  Why why = STALL;
  void at_least(Wait other) {
    if (other.until > until) *this = other;
  }
};

struct Warp {
  int block = 0, at = 0;
  int64_t rounds = 0;
  Wait ready, awaited;  // awaited: ready, were it not for the barrier it stands at
  Wait boards[BOARDS];
  std::vector<Cycle> fences[BOARDS];  // when those that are not yet known to be done, are
  Cycle copied = 0;
  Cycle access = 0;  // when it may send its next access to memory
};

struct Scheduler {
  std::vector<Warp*> warps;  // oldest first
  Warp* last = nullptr;
  Cycle next = 0, issued = -1;
  Cycle fp32 = 0, integer = 0, multiply = 0, even = 0, odd = 0;  // when each is free
  double tensor = 0;
};

struct Model {
  const Step* steps;
  int length;
  Machine m;
  std::vector<Warp> warps;
  std::vector<Scheduler> schedulers;
  std::vector<std::vector<Warp*>> waiting;  // of every block, at its barrier
  double shared = 0, lines = 0, l2 = 0;     // when each is free
  Cycle barrier = 0, now = 0;
  Totals totals{};

  Model(const Step* steps, int length, const Machine& machine)
      : steps(steps), length(length), m(machine), warps(size_t(m.warps) * m.blocks),
        schedulers(m.schedulers), waiting(m.blocks) {
    for (size_t w = 0; w < warps.size(); ++w) {
      warps[w].block = int(w) / m.warps;
      warps[w].ready.until = Cycle(warps[w].block) * m.apart;
      schedulers[w % m.schedulers].warps.push_back(&warps[w]);
    }
    std::erase_if(schedulers, [](const Scheduler& s) { return s.warps.empty(); });
  }

  // Until the slowest warp has gone round so often, or all together `most` times as often.
  void run(int64_t rounds, int64_t most) {
    auto slowest = [&] {
      auto behind = [](const Warp& a, const Warp& b) { return a.rounds < b.rounds; };
      return std::min_element(warps.begin(), warps.end(), behind)->rounds;
    };
    const int64_t enough = totals.issued + most * rounds * length * int64_t(warps.size());
    for (int turn = 0; turn % 64 || (slowest() < rounds && totals.issued < enough); ++turn) {
      now = NEVER;
      for (const Scheduler& s : schedulers) now = std::min(now, s.next);
      for (Scheduler& s : schedulers)
        if (s.next <= now) cycle(s);
    }
    totals.cycles = now;
  }

  // Issues from the first warp that can go on, or finds when one can.
  void cycle(Scheduler& s) {
    Cycle soonest = NEVER;
    auto tried = [&](Warp& w) {
      const Cycle units = w.ready.until <= now ? free(s, steps[w.at]) : 0;
      const Cycle can = std::max(w.ready.until, units);
      if (can <= now) issue(s, w, units);
      soonest = std::min(soonest, can);
      return can <= now;
    };
    if (s.last && tried(*s.last)) return;
    for (Warp* w : s.warps)
      if (tried(*w)) return;
    s.next = soonest;
  }

  // From when on the scheduler's units take this step. A bank may fall behind by one register.
  static Cycle free(const Scheduler& s, const Step& step) {
    if (step.unit == FP32) return std::max({s.fp32, s.even - 1, s.odd - 1});
    if (step.unit == TENSOR) return Cycle(s.tensor);
    return step.unit == INTEGER ? s.integer : step.unit == MULTIPLY ? s.multiply : 0;
  }

  void issue(Scheduler& s, Warp& w, Cycle units) {
    const Step& step = steps[w.at];
    if (now > s.issued + 1) {
      const Why unit = step.unit != FP32 ? STALL : s.fp32 < units ? BANKS : PIPE;
      const bool busy = units > w.ready.until || (unit == PIPE && s.fp32 == now);
      // While the tensor core works, nothing is lost, whatever warps wait for.
      const Cycle since = s.issued + 1, works = std::clamp(Cycle(s.tensor), since, now) - since;
      totals.idle[PIPE] += works;
      totals.idle[busy ? unit : w.ready.why] += now - since - works;
    }
    ++totals.issued;
    s.issued = now, s.last = &w, s.next = now + 1;
    const Wait done = serve(s, w, step);
    if (step.sets >= 0) {
      w.boards[step.sets].at_least(done);
      if (step.fence) w.fences[step.sets].push_back(done.until);
    }
    if (step.frees >= 0) w.boards[step.frees].at_least({now + m.read_cycles, STALL});
    if (++w.at == length) w.at = 0, ++w.rounds;
    await(w, now + step.stall);
    if (step.unit == BARRIER) arrive(w);
  }

  // Occupies the step's unit. When the result is there, and what one waits for until then.
  Wait serve(Scheduler& s, Warp& w, const Step& step) {
    switch (step.unit) {
      case FP32:
        s.fp32 = now + m.fp32_cycles;
        s.even = std::max(s.even, now) + step.even;
        s.odd = std::max(s.odd, now) + step.odd;
        break;
      case TENSOR: s.tensor = std::max(s.tensor, double(now)) + step.work; break;
      case INTEGER: s.integer = now + m.integer_cycles; break;
      case MULTIPLY: s.multiply = now + m.integer_cycles; break;
      case SHARED:
        shared = std::max(shared, double(accessed(w))) + step.work;
        return {Cycle(std::ceil(shared)) - 1 + step.latency, SHARED_LOAD};
      case LINES: {
        lines = std::max(lines, double(accessed(w))) + step.work;
        shared = std::max(shared, double(now)) + step.work;  // the same path brings the data
        double last = lines;
        if (step.sectors > 0) {
          l2 = std::max(l2, double(now)) + step.sectors * m.sector_cycles;
          last = std::max(last, l2);
        }
        const Cycle done =
            Cycle(std::ceil(last)) - 1 + (step.sectors > 0 ? m.far_latency : step.latency);
        if (step.copies) w.copied = std::max(w.copied, done);
        return {done, GLOBAL_LOAD};
      }
      default:
        if (step.fence) return {std::max(w.copied, now + step.latency), GLOBAL_LOAD};
    }
    return {now + step.latency, STALL};
  }

  // When a warp's access to memory leaves the scheduler.
  Cycle accessed(Warp& w) const {
    const Cycle start = std::max(w.access, now);
    w.access = start + m.access_cycles;
    return start;
  }

  // When a warp may issue its next step, as far as that depends on itself.
  void await(Warp& w, Cycle soonest) {
    const Step& step = steps[w.at];
    w.ready = {soonest, STALL};
    for (int board = 0; board < BOARDS; ++board)
      if (step.waits >> board & 1) w.ready.at_least(w.boards[board]);
    if (step.board >= 0) {
      auto& open = w.fences[step.board];
      std::erase_if(open, [&](Cycle done) { return done <= soonest; });
      std::sort(open.begin(), open.end());
      if (int(open.size()) > step.left)
        w.ready.at_least({open[open.size() - 1 - step.left], GLOBAL_LOAD});
    }
    totals.waited[w.ready.why] += w.ready.until - soonest;
  }

  // At the barrier, where the last of a block sets all free.
  void arrive(Warp& w) {
    barrier = std::max(barrier, now) + m.arrival_cycles;
    auto& here = waiting[w.block];
    here.push_back(&w);
    w.awaited = std::exchange(w.ready, {NEVER, AT_BARRIER});
    if (int(here.size()) < m.warps) return;
    for (Warp* each : here) {
      each->ready = each->awaited;
      each->ready.at_least({barrier + m.release_cycles, AT_BARRIER});
      totals.waited[AT_BARRIER] += each->ready.until - each->awaited.until;
    }
    here.clear();
    for (Scheduler& s : schedulers)
      for (const Warp* each : s.warps)
        s.next = std::min(s.next, std::max(each->ready.until, now + 1));
  }
};

}  // namespace

extern "C" {

int step_bytes() { return sizeof(Step); }

// Totals at the end of `warm` and of `rounds` rounds of the slowest warp.
void run_loop(const Step* steps, int length, const Machine* machine, int64_t warm, int64_t rounds,
              int64_t most, Totals* begun, Totals* ended) {
  Model all(steps, length, *machine);
  all.run(warm, most);
  *begun = all.totals;
  all.run(rounds, most);
  *ended = all.totals;
}
}
