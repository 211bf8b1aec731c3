// The blocks of a launch.
#include <algorithm>
#include <deque>
#include <numeric>

#include "../checks/conflicts.hpp"
#include "../checks/dependency.hpp"
#include "../checks/extern_arrays.hpp"
#include "../limits.hpp"
#include "divergence.hpp"
#include "parts.hpp"
#include "preemption.hpp"
#include "repeats.hpp"
#include "turns.hpp"

namespace sim {
namespace {

constexpr u64 RESIDENT = 4096;  // blocks in flight at most when the GPU's number is not known
constexpr u64 CROWD_BYTES = 64 << 20;  // of blocks that give way before others begin
constexpr u64 LEAST_CROWD = 64;        // such blocks
constexpr double WORTH_PARTS = 0.02;   // seconds, after which the other blocks run in parts
constexpr u64 PATIENCE = 4;            // times that every block finds nothing changed

const Warp& first_at_work(const Block& b) {
  const auto at_work = [](const Warp& w) { return !w.done(); };
  const auto found = std::find_if(b.warps.begin(), b.warps.end(), at_work);
  return found == b.warps.end() ? b.warps.back() : *found;
}

void shuffle(std::vector<u32>& numbers, u32 seed, u64& drawn) {
  for (size_t k = numbers.size(); k > 1; --k)
    std::swap(numbers[k - 1], numbers[mixed(u64(seed) << 32 ^ ++drawn) % k]);
}

// Blocks in flight: those that wait for others, in turn, and as many more as there is room for.
class Residents {
 public:
  explicit Residents(Machine& m)
      : machine(m), most(std::clamp<u64>(MAX_RESIDENT_BYTES / (m.block_bytes() + 1), 1,
                                         m.resident ? m.resident : RESIDENT)),
        next(m.first_block), count(std::min(u64(m.grid.x) * m.grid.y * m.grid.z, m.last_block)) {}

  void run_all() {
    const double begun = cpu_seconds();
    bool parts = may_part(machine);
    for (u64 turn = 1; some_left() || !paused.empty() || !fresh.empty(); ++turn) {
      if (parts && !(turn & 7) && paused.empty() && cpu_seconds() - begun > WORTH_PARTS) {
        parts = false;
        if (run_in_parts(machine, next, count)) return;
      }
      auto b = take();
      const u64 changes = machine.changes, stores = machine.stores;
      const Outcome outcome = run(*b);
      if (machine.out_of_time || machine.deadlocked || machine.trapped) return;
      const bool ended = outcome == Outcome::finished;
      b->stored |= stores != machine.stores;
      machine.ended += ended;
      machine.idle += ended && !b->stored;
      preempted = outcome == Outcome::preempted;
      quiet = outcome == Outcome::waiting && changes == machine.changes ? quiet + 1 : 0;
      const bool polls = outcome == Outcome::waiting || outcome == Outcome::polling;
      polled = polls && changes == machine.changes ? polled + 1 : 0;
      const bool due = outcome == Outcome::paused || !(turn & 63);
      if (interrupted || (due && spent(machine))) return report_out_of_time(first_at_work(*b));
      if (ended) retire(std::move(b));
      // Most blocks that wait do so for the one before: those that began backwards go on forwards.
      else if (machine.order == BACKWARDS && began && !preempted) paused.push_front(std::move(b));
      else paused.push_back(std::move(b));
      const bool never = quiet > PATIENCE * paused.size() && (!some_left() || !room());
      if ((never || polled > MANY_POLLS * paused.size()) && lanes_pass()) continue;
      if (never) return give_up();
      if (polled > MANY_POLLS * paused.size() && stuck()) return;
    }
  }

 private:
  Machine& machine;
  const u64 most;
  const u64 crowd = std::max(CROWD_BYTES / (machine.block_bytes() + 1), LEAST_CROWD);
  u64 next;
  const u64 count;
  std::vector<u32> begins;  // where the order is not that of the numbers: what begins, last first
  u64 drawn = 0;            // of the order's random numbers
  bool began = false;       // the block that was taken
  bool preempted = false;   // it gave way
  u64 quiet = 0;            // turns in a row that changed nothing
  u64 polled = 0;           // the same, but for registers
  std::deque<std::unique_ptr<Block>> spare, fresh, paused;
  std::vector<std::unique_ptr<Block>> ended;  // whose clusters have not

  bool room() const { return paused.size() < most; }
  bool some_left() const { return next < count || !begins.empty(); }

  // The number of the block that begins, or of the first of its cluster. A GPU starts blocks in the
  // order of their numbers, as many as there is room for; any of these may then run first.
  u64 next_number(u32 size) {
    if (machine.order == FORWARDS) return (next += size) - size;
    if (begins.empty()) {
      const u64 room = (most - std::min<u64>(paused.size(), most)) / size * size;
      const u64 end = std::min(next + std::max<u64>(room, size), count);
      for (; next < end; next += size) begins.push_back(u32(next));
      if (machine.order != BACKWARDS) shuffle(begins, machine.order, drawn);
    }
    const u32 number = begins.back();
    begins.pop_back();
    return number;
  }

  std::unique_ptr<Block> take() {
    // The blocks of one cluster come to their end before the next begins, if they can.
    const bool waits = machine.cluster_size() > 1 && !paused.empty() && quiet <= paused.size();
    const bool crowded = preempted && paused.size() >= crowd;
    if (some_left() && room() && !waits && !crowded) begin_next();
    began = !fresh.empty();
    auto& from = began ? fresh : paused;
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
      return begin(*fresh.back(), u32(next_number(1)));
    }
    const auto cluster = std::make_shared<Cluster>();
    const u64 number = next_number(size);
    for (u32 rank = 0; rank < size; ++rank) {
      fresh.push_back(blank());
      Block& b = *fresh.back();
      begin(b, machine.block_in_cluster(u32(number / size), rank));
      b.cluster = cluster;
      b.rank = rank;
      cluster->blocks.push_back(&b);
    }
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

  // Lets lanes that stand at a join go on, since others may be spinning on them: a GPU promises
  // each lane progress. Only when all else waits, since it mostly keeps lanes together there. False
  // when no lanes stand at a join.
  bool lanes_pass() {
    bool any = false;
    for (const auto& b : paused)
      for (Warp& w : b->warps) any |= w.waited && !w.fair && take_turns(w);
    if (any) quiet = polled = 0;
    return any;
  }

  // Whether all blocks in flight wait for mbarriers for ever; then says so of one of them.
  bool stuck() const {
    const Warp* found = nullptr;
    for (const auto& b : paused) {
      const Warp* const w = stuck_at_mbarrier(*b, true);
      if (!w) return false;
      if (!found || (counts_bytes_wrong(*w) && !counts_bytes_wrong(*found))) found = w;
    }
    if (found) report_mbarrier(*found);
    return found;
  }

  // Nothing changes any more. Where more blocks would fit the GPU, none can be blamed.
  void give_up() {
    const bool more = some_left();
    if (more && most != machine.resident) {
      quiet = 0;
      return;
    }
    if (stuck()) return;
    for (const auto& b : paused)  // a wrong count of bytes is why the others wait
      for (const Warp& w : b->warps)
        if (!w.done() && w.look.mbarrier && counts_bytes_wrong(w)) return report_mbarrier(w);
    for (Warp& w : paused.front()->warps) {
      if (w.done() || !w.look.waits) continue;
      if (w.look.mbarrier) return report_mbarrier(w);
      w.pc = w.look.pc;
      Event e = event_at(w, more ? NOT_ALL_RESIDENT : WAITS_FOR_EVER, __builtin_ctz(w.live));
      set_details(e, {i64(most), i64(std::min<u64>(count, ~0u))});
      machine.report(e);
      break;
    }
    machine.deadlocked = true;
  }
};

}  // namespace

void Machine::launch() {
  for (auto& r : regions) {
    release(r->stamps);
    r->hidden.clear();
    release(r->lines);
    r->copied = r->touched = r->read_unseen = false;
    r->uses.clear();
    r->freed.pc = ~0u;
  }
  flags.clear();
  looks.clear();
  stale.clear();
  ended = idle = 0;
  warp_order.resize((ntid.x * ntid.y * ntid.z + 31) / 32);
  std::iota(warp_order.begin(), warp_order.end(), 0u);
  u64 drawn = u64{1} << 31;
  if (order == BACKWARDS) std::reverse(warp_order.begin(), warp_order.end());
  else if (order != FORWARDS) shuffle(warp_order, order, drawn);
  Memo* const memo = std::exchange(memos.next, nullptr);
  const bool kept = memo && begin_memo(*this, *memo);
  begin_dependency(*this);
  Residents(*this).run_all();
  conclude(*this);
  suggest_offsets(*this);
  if (memo) end_memo(*this, *memo, kept);
  if (tracing) keep_in_flight(*this);
  ++launches;
}

}  // namespace sim
