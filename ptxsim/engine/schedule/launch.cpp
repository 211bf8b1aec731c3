// Who runs when: groups of lanes within a warp, warps within a block, blocks within a launch.
//
// A warp runs one group at a time. At the head of every basic block groups that stand there
// together merge, and the group whose block comes first (deepest call first) runs next, so that
// both sides of a branch reach their join before anyone passes it. Warps run to their next
// barrier in turn; a warp that spins gives way when its fuel is spent, and so does a block.
#include <algorithm>
#include <ctime>
#include <deque>

#include "../checks/dependency.hpp"
#include "../checks/doubts.hpp"
#include "../checks/undefined.hpp"
#include "../limits.hpp"
#include "../machine/machine.hpp"
#include "../program/operations.hpp"
#include "divergence.hpp"
#include "turns.hpp"
#include "waiting.hpp"

namespace sim {
namespace {

constexpr i64 WARP_FUEL = 1 << 14;  // basic blocks in one turn of a warp
constexpr int SPINS = 8;            // turns in which a block's warps spin before other blocks run
constexpr int IDLE = 2;             // turns in which its warps only wait before other blocks run
constexpr u64 RESIDENT = 4096;      // blocks in flight at most when the GPU's number is not known
constexpr u64 PATIENCE = 4;         // times that every block finds nothing changed

bool before(const Group& a, const Group& b) {
  return a.stack.size() != b.stack.size() ? a.stack.size() > b.stack.size() : a.rank < b.rank;
}

bool same_place(const Group& a, const Group& b) { return a.pc == b.pc && a.stack == b.stack; }

void take(Warp& w, size_t k) {
  w.now = w.others[k];
  w.now.wait = Group::ready;
  w.pc = w.now.pc;
  w.others.erase(w.others.begin() + k);
}

// Choose the next group when none is running; false when all wait.
bool pick(Warp& w) {
  if (!w.live) return false;
  size_t best = w.others.size();
  for (size_t k = 0; k < w.others.size(); ++k)
    if (w.others[k].wait == Group::ready &&
        (best == w.others.size() || before(w.others[k], w.others[best])))
      best = k;
  if (best == w.others.size()) {  // nobody can bring the lanes that a warp-level operation misses
    for (size_t k = 0; k < w.others.size() && best == w.others.size(); ++k)
      if (w.others[k].wait != Group::in_barrier) best = k;
    if (best == w.others.size()) return false;
    w.forced = true;
  }
  take(w, best);
  return true;
}

// At a block head: merge with groups standing here, then let an earlier one go first.
bool reconverge(Warp& w) {
  w.now.pc = w.pc;
  for (size_t k = 0; k < w.others.size();) {
    if (w.others[k].wait == Group::ready && same_place(w.others[k], w.now)) {
      w.now.mask |= w.others[k].mask;
      w.others.erase(w.others.begin() + k);
    } else {
      ++k;
    }
  }
  if (w.others.empty()) w.fair = false;
  if (w.fair) return false;
  size_t best = w.others.size();
  for (size_t k = 0; k < w.others.size(); ++k)
    if (w.others[k].wait == Group::ready && before(w.others[k], w.now) &&
        (best == w.others.size() || before(w.others[k], w.others[best])))
      best = k;
  if (best == w.others.size()) return false;
  Group mine = w.now;
  take(w, best);
  w.others.push_back(mine);
  return true;
}

}  // namespace

// Head of a basic block; vec is zero when it does nothing but exit.
Flow block_head(Warp& w, const Ins& i) {
  w.now.rank = u32(i.rank());
  if (!w.others.empty()) {
    if (reconverge(w)) return Flow::jumped;
    for (const Group& g : w.others)
      w.passed |= g.wait == Group::at_barrier && i.vec && g.stack.size() == w.now.stack.size() &&
                  g.rank != w.now.rank && !w.program->reaches(w.now.rank, g.rank);
  }
  w.fuel -= operands<BlockOperands>(i).fuel;
  if (w.fuel < 0) return Flow::yield;
  FlowCount& c = w.program->blocks[w.pc];
  c.warps++;
  c.lanes += __builtin_popcount(w.now.mask);
  return Flow::next;
}

namespace {

void propagate(Warp& w, const Ins& i) {
  if (i.flags & OWN_TAINT || !i.x) return;
  const i32* x = i.x;
  const i32 outputs = *x++;
  const i32* out = x;
  x += outputs;
  const i32 inputs = *x++;
  const i32* in = x;
  x += inputs;
  const i32 predicate_outputs = *x++;
  const i32* pout = x;
  x += predicate_outputs;
  const i32 predicate_inputs = *x++;
  const i32* pin = x;
  u32 bad = 0, origin = 0;
  auto collect = [&](u32 lanes, u32 from) {
    if (lanes) origin = from;
    bad |= lanes;
  };
  if (i.flags & SELECTS) {
    u32 p = w.preds[pin[0]];
    collect(w.undefined[in[0]] & p, w.origin[in[0]]);
    collect(w.undefined[in[1]] & ~p, w.origin[in[1]]);
  } else {
    for (i32 k = 0; k < inputs; ++k) collect(w.undefined[in[k]], w.origin[in[k]]);
  }
  for (i32 k = 0; k < predicate_inputs; ++k)
    collect(w.pred_undefined[pin[k]], w.pred_origin[pin[k]]);
  bad &= w.exec;
  if (bad && i.flags & CROSS_LANE) bad = w.exec;
  for (i32 k = 0; k < outputs; ++k) {
    w.undefined[out[k]] = (w.undefined[out[k]] & ~w.exec) | bad;
    if (bad) w.origin[out[k]] = origin;
  }
  for (i32 k = 0; k < predicate_outputs; ++k) {
    w.pred_undefined[pout[k]] = (w.pred_undefined[pout[k]] & ~w.exec) | bad;
    if (bad) w.pred_origin[pout[k]] = origin;
  }
}

// The running group may be spinning on another of the same warp: the next ready one takes over.
void give_way(Warp& w) {
  w.fair = true;
  w.now.pc = w.pc;
  w.others.push_back(w.now);
  w.now.mask = 0;
  std::rotate(w.others.begin(), w.others.begin() + 1, w.others.end());
  for (size_t k = 0; k < w.others.size(); ++k)
    if (w.others[k].wait == Group::ready) return take(w, k);
}

// What a second look is to find out is known.
void stop(Warp& w) {
  w.block->stopped = true;
  w.block->machine->trapped = true;
}

void run_warp(Warp& w) {
  w.fuel = WARP_FUEL;
  w.waited = false;
  if (!w.now.mask && !pick(w)) return;
  const Ins* code = w.program->code.data();
  for (;;) {
    const Ins& i = code[w.pc];
    w.exec = w.now.mask;
    if (__builtin_expect(w.tainted, 0)) check_use(w, i);
    if (i.guard >= 0) {
      if (i.flags & DECIDES) check_defined(w, i.guard, UNDEFINED_BRANCH, true);
      w.exec &= i.negate ? ~w.preds[i.guard] : w.preds[i.guard];
      if (!w.exec) {
        ++w.pc;
        continue;
      }
      FlowCount& c = w.program->guarded[w.pc];
      c.warps++;
      c.lanes += __builtin_popcount(w.exec);
    }
    const Flow flow = i.run(w, i);
    if (__builtin_expect(w.tainted, 0)) {
      propagate(w, i);
      if (w.block->machine->used) return stop(w);
    }
    if (flow == Flow::next) {
      ++w.pc;
    } else if (flow == Flow::yield) {
      if (w.block->stopped) return;
      if (w.fuel < 0 || w.resting) {
        w.waited = w.resting;
        w.resting = false;
        if (!w.others.empty()) give_way(w);
        return;
      }
      if (!w.now.mask && !pick(w)) return;
    }
  }
}

void fill(Warp& w, i32 slot, u32 width, u64 value) {
  if (width == 8) std::fill_n(lanes<u64>(w, slot), LANES, value);
  else std::fill_n(lanes<u32>(w, slot), LANES, u32(value));
}

void special(Warp& w, SpecialRegister which, u64 value) {
  if (w.program->special[which] >= 0) fill(w, w.program->special[which], 4, value);
}

template <class F> void special_lanes(Warp& w, SpecialRegister which, F f) {
  if (w.program->special[which] < 0) return;
  u32* d = lanes<u32>(w, w.program->special[which]);
  for (int l = 0; l < LANES; ++l) d[l] = f(u32(l));
}

// What stays the same for every block of a launch.
void prepare(Block& b, Machine& m) {
  b.machine = &m;
  b.program = m.program;
  b.threads = m.ntid.x * m.ntid.y * m.ntid.z;
  const u32 shared = m.program->shared_bytes + m.dynamic_bytes;
  b.shared.resize(shared + 128);
  b.cells.resize(b.shared.size() >> m.program->shared_shift);
  b.warps = std::vector<Warp>((b.threads + LANES - 1) / LANES);
  for (u32 k = 0; k < b.warps.size(); ++k) {
    Warp& w = b.warps[k];
    w.block = &b;
    w.home = &b;
    w.program = m.program;
    w.index = k;
    w.regs_store.resize(size_t(m.program->slots) * 128 + 64);
    w.regs =
        w.regs_store.data() + (64 - reinterpret_cast<uintptr_t>(w.regs_store.data()) % 64) % 64;
    w.preds_store.resize(m.program->predicates + 1);
    w.preds = w.preds_store.data();
    w.local.resize(size_t(m.program->local_bytes) * LANES);
    for (const auto& c : m.program->constants) fill(w, c.slot, c.width, c.value);
    auto thread = [&](u32 l) { return k * LANES + l; };
    special_lanes(w, TID_X, [&](u32 l) { return thread(l) % m.ntid.x; });
    special_lanes(w, TID_Y, [&](u32 l) { return thread(l) / m.ntid.x % m.ntid.y; });
    special_lanes(w, TID_Z, [&](u32 l) { return thread(l) / m.ntid.x / m.ntid.y; });
    special_lanes(w, LANEID, [](u32 l) { return l; });
    special_lanes(w, LANEMASK_EQ, [](u32 l) { return 1u << l; });
    special_lanes(w, LANEMASK_LT, [](u32 l) { return (1u << l) - 1; });
    special_lanes(w, LANEMASK_LE, [](u32 l) { return (2u << l) - 1; });
    special_lanes(w, LANEMASK_GT, [](u32 l) { return ~((2u << l) - 1); });
    special_lanes(w, LANEMASK_GE, [](u32 l) { return ~((1u << l) - 1); });
    special(w, NTID_X, m.ntid.x);
    special(w, NTID_Y, m.ntid.y);
    special(w, NTID_Z, m.ntid.z);
    special(w, NCTAID_X, m.grid.x);
    special(w, NCTAID_Y, m.grid.y);
    special(w, NCTAID_Z, m.grid.z);
    special(w, WARPID, k);
    special(w, NWARPID, b.warps.size());
    special(w, CLUSTER_NCTAID_X, m.cluster.x);
    special(w, CLUSTER_NCTAID_Y, m.cluster.y);
    special(w, CLUSTER_NCTAID_Z, m.cluster.z);
    special(w, CLUSTER_NCTARANK, m.cluster_size());
    special(w, NCLUSTERID_X, m.grid.x / m.cluster.x);
    special(w, NCLUSTERID_Y, m.grid.y / m.cluster.y);
    special(w, NCLUSTERID_Z, m.grid.z / m.cluster.z);
    special(w, NSMID, MULTIPROCESSORS);
    special(w, GRIDID, 0);
    special(w, ENVREG1, m.workspace >> 32);
    special(w, ENVREG2, m.workspace);
    special(w, DYNAMIC_SMEM_SIZE, m.dynamic_bytes);
    special(w, TOTAL_SMEM_SIZE, shared);
  }
}

void begin(Block& b, u32 linear) {
  const Machine& m = *b.machine;
  b.linear = linear;
  b.id = {linear % m.grid.x, linear / m.grid.x % m.grid.y, linear / m.grid.x / m.grid.y};
  b.live = b.threads;
  b.fenced = b.fenced_within = b.stopped = b.waited = b.triggered = false;
  b.past_wait.clear();
  u32* words = reinterpret_cast<u32*>(b.shared.data());
  std::fill(words, words + b.shared.size() / 4, POISON);
  std::memset(static_cast<void*>(b.cells.data()), 0, b.cells.size() * sizeof(Cell));
  for (u32 at = 0; at < b.program->reserved; at += 1u << b.program->shared_shift)
    b.cells[(b.program->arrays[0].start + at) >> b.program->shared_shift].writer = BEFORE_ALL;
  for (Barrier& barrier : b.barriers) barrier = {};
  b.reading.clear();
  b.peers.clear();
  b.visitors.clear();
  b.cluster = nullptr;
  b.rank = 0;
  b.at_cluster_barrier = b.past_cluster_barrier = {};
  b.exited = {};
  b.mbarriers.clear();
  b.flags.clear();
  for (Warp& w : b.warps) {
    u32 lanes_here = std::min(u32(LANES), b.threads - w.index * LANES);
    w.live = w.started = lanes_here == 32 ? ALL : (1u << lanes_here) - 1;
    w.now = Group{};
    w.now.mask = w.live;
    w.pc = m.program->entry;
    w.others.clear();
    w.fair = w.forced = w.passed = w.resting = w.waited = w.tainted = false;
    w.look = {};
    w.cc = w.past_wait = 0;
    w.async.clear();
    for (auto& frames : w.saved) frames.clear();
    std::fill(w.async_group, w.async_group + LANES, 0);
    std::fill(w.bulk_group, w.bulk_group + LANES, 0);
    w.wgmma_group = 0;
    w.warpgroup = {};
    w.settled.clear();
    w.wgmmas.clear();
    w.cluster_phase = 0;
    w.known = w.released = w.released_to_all = w.acquired = {};
    special(w, CTAID_X, b.id.x);
    special(w, CTAID_Y, b.id.y);
    special(w, CTAID_Z, b.id.z);
    special(w, SMID, linear % MULTIPROCESSORS);
    const Dim c = m.cluster;
    const Dim own{b.id.x % c.x, b.id.y % c.y, b.id.z % c.z};
    special(w, CLUSTER_CTAID_X, own.x);
    special(w, CLUSTER_CTAID_Y, own.y);
    special(w, CLUSTER_CTAID_Z, own.z);
    special(w, CLUSTER_CTARANK, own.x + c.x * (own.y + c.y * own.z));
    special(w, CLUSTERID_X, b.id.x / c.x);
    special(w, CLUSTERID_Y, b.id.y / c.y);
    special(w, CLUSTERID_Z, b.id.z / c.z);
  }
}

void report_deadlock(Block& b) {
  for (Warp& w : b.warps)
    for (const Group& g : w.others)
      if (g.wait == Group::in_barrier) {
        w.pc = g.pc - 1;
        Event e = event_at(w, DEADLOCK, __builtin_ctz(g.mask));
        const Barrier& barrier = b.barriers[g.barrier_id];
        e.arrived = barrier.arrived;
        e.expected = barrier.expected ? barrier.expected : b.live;
        b.machine->report(e);
        b.machine->deadlocked = true;
        return;
      }
}

// Every warp waits: one at an mbarrier, the others there, too, or at a barrier.
const Warp* stuck_at_mbarrier(const Block& b) {
  const Warp* found = nullptr;
  for (const Warp& w : b.warps) {
    if (w.done()) continue;
    const bool others_run = std::any_of(w.others.begin(), w.others.end(), [&](const Group& g) {
      return g.wait == Group::ready && g.pc != w.look.pc + 1;
    });
    if (w.waited && w.look.waits && w.look.mbarrier) found = found ? found : &w;
    else if (w.now.mask) return nullptr;
    if (others_run) return nullptr;
  }
  return found;
}

void report_mbarrier(const Warp& w) {
  Machine& m = *w.home->machine;
  Event e = event_at(w, MBARRIER_NEVER_COMPLETES, __builtin_ctz(w.live));
  e.pc = e.other_pc = w.look.pc;
  const u64 owner = w.look.mbarrier >> 24 & 0xff;
  const Block& block = owner && w.home->cluster && owner <= w.home->cluster->blocks.size()
                           ? *w.home->cluster->blocks[owner - 1]
                           : *w.home;
  const auto found = block.mbarriers.find(u32(w.look.mbarrier & 0xffffff));
  if (found != block.mbarriers.end()) {
    const MBarrier& b = found->second;
    e.other_pc = b.creator_pc;
    e.arrived = b.count - b.pending;
    e.expected = b.count;
    e.mask = u32(b.transactions);
  }
  m.report(e);
  m.deadlocked = true;
}

// waiting: for what other blocks do
enum class Outcome { finished, paused, waiting };

void out_of_time(const Warp& w) {
  Machine& m = *w.block->machine;
  m.out_of_time = true;
  if (!w.done()) m.report(event_at(w, ENDLESS, w.now.mask ? __builtin_ctz(w.now.mask) : 0));
}

bool spent(const Machine& m) { return m.steps > m.step_limit || cpu_seconds() > m.deadline; }

Outcome run(Block& b) {
  Machine& m = *b.machine;
  int spins = 0, idle = 0;
  for (u64 turn = 1;; ++turn) {
    bool spun = false, busy = false, looks = false, at_mbarrier = false;
    const u64 steps_before = m.steps;
    const u32 live_before = b.live;
    u64 moved = 0;
    for (Warp& w : b.warps) {
      if (w.done()) continue;
      const u32 pc = w.pc;
      const bool was_running = w.now.mask;
      run_warp(w);
      if (b.stopped) return Outcome::finished;
      m.steps += WARP_FUEL - std::max<i64>(w.fuel, 0);
      moved += was_running || w.pc != pc;
      busy |= (was_running || w.pc != pc || w.fuel < WARP_FUEL) && !w.waited;
      looks |= w.waited && w.look.waits;
      at_mbarrier |= w.waited && !w.look.waits;
      spun |= w.fuel < 0;
      if ((spun || !(turn & (m.sampling ? 7 : 1023))) && spent(m)) {
        out_of_time(w);
        return Outcome::finished;
      }
    }
    if (!b.live) return Outcome::finished;
    if (m.steps == steps_before && !moved && b.live == live_before) {
      report_deadlock(b);
      return Outcome::finished;
    }
    if (spun && ++spins >= SPINS) return Outcome::paused;
    idle = busy ? 0 : idle + 1;
    if (idle >= IDLE && (!b.cluster || b.cluster->blocks.size() == 1)) {
      if (const Warp* w = stuck_at_mbarrier(b)) {
        report_mbarrier(*w);
        return Outcome::finished;
      }
    }
    if (idle >= IDLE && looks) return at_mbarrier ? Outcome::paused : Outcome::waiting;
  }
}

const Warp& first_at_work(const Block& b) {
  const auto at_work = [](const Warp& w) { return !w.done(); };
  const auto found = std::find_if(b.warps.begin(), b.warps.end(), at_work);
  return found == b.warps.end() ? b.warps.back() : *found;
}

// Blocks in flight: those that wait for others, in turn, and as many more as there is room for.
class Residents {
 public:
  explicit Residents(Machine& m)
      : machine(m), most(std::clamp<u64>(MAX_RESIDENT_BYTES / (m.block_bytes() + 1), 1,
                                         m.resident ? m.resident : RESIDENT)),
        next(m.first_block), count(std::min(u64(m.grid.x) * m.grid.y * m.grid.z, m.last_block)) {}

  void run_all() {
    for (u64 turn = 1; next < count || !paused.empty() || !fresh.empty(); ++turn) {
      auto b = take();
      const u64 changes = machine.changes;
      const Outcome outcome = run(*b);
      if (machine.out_of_time || machine.deadlocked || machine.trapped) return;
      const bool ended = outcome == Outcome::finished;
      quiet = outcome == Outcome::waiting && changes == machine.changes ? quiet + 1 : 0;
      if (!(turn & 63) && spent(machine)) return out_of_time(first_at_work(*b));
      if (ended) retire(std::move(b));
      else paused.push_back(std::move(b));
      if (quiet > PATIENCE * paused.size() && (next == count || !room())) return give_up();
    }
  }

 private:
  Machine& machine;
  const u64 most;
  u64 next;
  const u64 count;
  u64 quiet = 0;  // turns in a row that changed nothing
  std::deque<std::unique_ptr<Block>> spare, fresh, paused;
  std::vector<std::unique_ptr<Block>> ended;  // whose clusters have not

  bool room() const { return paused.size() < most; }

  std::unique_ptr<Block> take() {
    // The blocks of one cluster come to their end before the next begins, if they can.
    const bool waits = machine.cluster_size() > 1 && !paused.empty() && quiet <= paused.size();
    if (next < count && room() && !waits) begin_next();
    auto& from = fresh.empty() ? paused : fresh;
    auto b = std::move(from.front());
    from.pop_front();
    return b;
  }

  std::unique_ptr<Block> blank() {
    if (spare.empty()) {
      auto b = std::make_unique<Block>();
      prepare(*b, machine);
      return b;
    }
    auto b = std::move(spare.front());
    spare.pop_front();
    return b;
  }

  void begin_next() {
    const u32 size = machine.cluster_size();
    if (size == 1) {
      fresh.push_back(blank());
      return begin(*fresh.back(), u32(next++));
    }
    const auto cluster = std::make_shared<Cluster>();
    for (u32 rank = 0; rank < size; ++rank) {
      fresh.push_back(blank());
      Block& b = *fresh.back();
      begin(b, machine.block_in_cluster(u32(next / size), rank));
      b.cluster = cluster;
      b.rank = rank;
      cluster->blocks.push_back(&b);
    }
    next += size;
  }

  // The shared memory of a block stays as long as its cluster.
  void retire(std::unique_ptr<Block> b) {
    const auto cluster = b->cluster;
    const bool over = !cluster || ++cluster->finished == cluster->blocks.size();
    ended.push_back(std::move(b));
    if (!over) return;
    for (auto& each : ended)
      if (each->cluster == cluster) spare.push_back(std::move(each));
    ended.erase(std::remove(ended.begin(), ended.end(), nullptr), ended.end());
  }

  // Nothing changes any more. Where more blocks would fit the GPU, none can be blamed.
  void give_up() {
    const bool more = next < count;
    if (more && most != machine.resident) {
      quiet = 0;
      return;
    }
    for (Warp& w : paused.front()->warps) {
      if (w.done() || !w.look.waits) continue;
      if (w.look.mbarrier) return report_mbarrier(w);
      w.pc = w.look.pc;
      Event e = event_at(w, more ? NOT_ALL_RESIDENT : WAITS_FOR_EVER, __builtin_ctz(w.live));
      e.arrived = u32(most);
      e.expected = u32(std::min<u64>(count, ~0u));
      machine.report(e);
      break;
    }
    machine.deadlocked = true;
  }
};

}  // namespace

double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

Flow park(Warp& w, Group::Wait why, u32 pc) {
  w.now.pc = pc;
  w.now.wait = why;
  w.others.push_back(w.now);
  w.now.mask = 0;
  w.now.wait = Group::ready;
  return Flow::yield;
}

u32 Machine::block_in_cluster(u32 index, u32 rank) const {
  const u32 across = grid.x / cluster.x, down = grid.y / cluster.y;
  const Dim of{index % across, index / across % down, index / across / down};
  const Dim at{of.x * cluster.x + rank % cluster.x, of.y * cluster.y + rank / cluster.x % cluster.y,
               of.z * cluster.z + rank / cluster.x / cluster.y};
  return at.x + grid.x * (at.y + grid.y * at.z);
}

u64 Machine::block_bytes() const {
  const Program& p = *program;
  const u64 warps = (u64(ntid.x) * ntid.y * ntid.z + LANES - 1) / LANES;
  const u64 shared = u64(p.shared_bytes) + dynamic_bytes;
  const u64 cell = sizeof(Cell) + (cluster_size() > 1 ? sizeof(PeerCell) : 0);
  return warps * (p.slots * u64{128} + p.local_bytes * u64{LANES}) + shared +
         (shared >> p.shared_shift) * cell;
}

Flow wait_in_turn(Warp& w) {
  w.pc++;
  w.resting = true;
  return Flow::yield;
}

void Machine::launch() {
  for (auto& r : regions) {
    r->stamps.clear();
    r->lines.clear();
    r->uses.clear();
  }
  flags.clear();
  begin_dependency(*this);
  Residents(*this).run_all();
  if (tracing) keep_in_flight(*this);
  ++launches;
}

void add_schedule(Table& t) {
  t.push_back({"block", block_head, ">ii", [](const Program& p, const Ins& i) {
                 const auto o = operands<BlockOperands>(i);
                 return o.fuel > 0 && o.stack >= 0 && u64(i.rank()) < p.ranks;
               }});
}

}  // namespace sim
