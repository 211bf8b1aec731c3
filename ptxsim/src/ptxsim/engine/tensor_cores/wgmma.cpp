// wgmma: each warp computes its 16 of the 64 rows when it comes to the instruction. What it read
// of shared memory, and its result, count as under way until their group is waited for. As on GPUs,
// the four warps multiply together: none is past its wait before all have come to the wgmma.
#include <algorithm>

#include "../checks/undefined.hpp"
#include "../control/barriers.hpp"
#include "../program/kinds.hpp"
#include "../program/operations.hpp"
#include "../schedule/divergence.hpp"
#include "shared_matrix.hpp"

namespace sim {
namespace {

constexpr u32 ROWS = 16;  // of a warp

// --- the order of registers: wgmma.fence

u64 digest(Warp& w, i32 slot) {
  const u64* words = lanes<u64>(w, slot);
  u64 sum = 0;
  for (int k = 0; k < LANES / 2; ++k) sum = (sum ^ words[k]) * 0x9e3779b97f4a7c15u + (sum >> 31);
  return sum;
}

Flow fence(Warp& w, const Ins&) {
  Flow flow = Flow::next;
  if (!come_together(w, flow)) return flow;
  w.settled.clear();
  if (!w.block->machine->sampling)
    for (u32 slot = 0; slot < w.program->slots; ++slot) w.settled.insert(digest(w, i32(slot)));
  w.settled.insert(0);  // it is not empty any more
  return arrive_and_wait(w, BARRIERS + w.index / WARPS_OF_A_GROUP, WARPS_OF_A_GROUP * LANES);
}

// A register that wgmma reads holds what it held at the last fence, or what wgmma has put there.
bool settled(Warp& w, i32 slot) { return w.settled.count(digest(w, slot)); }
// --- wgmma.mma_async

enum Form : i32 { TRANSPOSE_A = 1, TRANSPOSE_B = 2, NEGATE_A = 4, NEGATE_B = 8 };

void report(Warp& w, EventKind kind) { w.block->machine->report(event_at(w, kind, 0)); }

// x: d…, d…, then A's descriptor or its four registers, B's descriptor, scale-d, Form. vec: N / 8
template <class T, bool halves> Flow multiply(Warp& w, const Ins& i, bool from_registers) {
  Flow flow = Flow::next;
  if (!come_together(w, flow)) return flow;
  if (w.block->machine->sampling) return Flow::next;  // no address depends on the product
  constexpr int K = 32 / T::bytes;
  const u32 n = i.vec * 8, count = n / (halves ? 4 : 2);
  const i32 *d = i.x + i.pooled(), *of_a = d + size_t(2) * count,
            *rest = of_a + (from_registers ? 4 : 1);
  const u64 b_descriptor = lanes<u64>(w, rest[0])[0];
  const bool adds = w.preds[rest[1]] & 1;
  const i32 form = rest[2];

  if (w.settled.empty()) report(w, WGMMA_NOT_FENCED);
  else if ((adds && !std::all_of(d, d + count, [&](i32 slot) { return settled(w, slot); })) ||
           (from_registers &&
            !std::all_of(of_a, of_a + 4, [&](i32 slot) { return settled(w, slot); })))
    report(w, WGMMA_REGISTERS_SET);

  std::vector<Vector<T, K>> a(ROWS), b(n);
  std::vector<bool> bad_a(ROWS), bad_b(n);
  u32 origin = w.pc - 1;
  if (from_registers) {
    constexpr u32 P = T::per_register;
    for (int l = 0; l < LANES; ++l)
      for (u32 r = 0; r < 4; ++r)
        for (u32 e = 0; e < P; ++e)
          a[u32(l) / 4 + 8 * (r & 1)].set(int(u32(l) % 4 * P + e + 4 * P * (r >> 1)),
                                          T::bits(lanes<u32>(w, of_a[r])[l], e));
    for (u32 r = 0; r < 4 && w.tainted; ++r) {
      const u32 undefined = w.undefined[of_a[r]];
      if (undefined) origin = w.origin[of_a[r]];
      for (int l = 0; l < LANES; ++l)
        if (undefined >> l & 1) bad_a[u32(l) / 4 + 8 * (r & 1)] = true;
    }
    check_in_flight(w, of_a, 4);
  } else {
    Matrix matrix(w, lanes<u64>(w, of_a[0])[0], form & TRANSPOSE_A);
    read_matrix(matrix, form & TRANSPOSE_A, w.index % WARPS_OF_A_GROUP * ROWS, ROWS, a, bad_a);
    matrix.keep();
  }
  Matrix matrix(w, b_descriptor, form & TRANSPOSE_B);
  read_matrix(matrix, form & TRANSPOSE_B, 0, n, b, bad_b);
  matrix.keep();
  if (form & NEGATE_A)
    for (auto& row : a) row.negate();
  if (form & NEGATE_B)
    for (auto& column : b) column.negate();

  for (u32 r = 0; r < count; ++r) {
    u32* const sums = lanes<u32>(w, d[r]);
    u32 undefined = 0, from = origin;
    if (adds && w.tainted && w.undefined[d[r]] && !is_wgmma(w.program->code[w.origin[d[r]]])) {
      undefined = w.undefined[d[r]];
      from = w.origin[d[r]];
    }
    for (int l = 0; l < LANES; ++l) {
      const u32 before = sums[l];
      u32 after = 0;
      for (u32 half = 0; half < (halves ? 2 : 1); ++half) {
        const u32 e = halves ? 2 * r + half : r;
        const u32 row = u32(l) / 4 + (e & 2) * 4, column = e / 4 * 8 + u32(l) % 4 * 2 + (e & 1);
        const float start = !adds    ? 0
                            : halves ? F16::value(F16::bits(before, half))
                                     : bits_to_float(before);
        const float sum = sum_of_products<T, K, halves>(a[row], b[column], start);
        after |= halves ? u32(to_half(sum).bits) << 16 * half : float_to_bits(sum);
        undefined |= u32(bad_a[row] || bad_b[column]) << l;
      }
      sums[l] = after;
    }
    // Until the group is waited for, nobody may use the result.
    mark_undefined(w, d[r], undefined ? undefined : ALL, undefined ? from : w.pc);
    w.settled.insert(digest(w, d[r]));
  }
  w.wgmmas.push_back({w.pc, w.wgmma_group});
  return Flow::next;
}

template <class T, bool halves> Flow of_registers(Warp& w, const Ins& i) {
  return multiply<T, halves>(w, i, true);
}
template <class T, bool halves> Flow of_memory(Warp& w, const Ins& i) {
  return multiply<T, halves>(w, i, false);
}

Flow commit_products(Warp& w, const Ins&) {
  Flow flow = Flow::next;
  if (!come_together(w, flow)) return flow;
  w.wgmma_group++;
  return Flow::next;
}

// Calls `f` for the warps of the warpgroup that have not left.
template <class F> void each_of_warpgroup(const Warp& w, F f) {
  auto& warps = w.block->warps;
  const u32 first = w.index / WARPS_OF_A_GROUP * WARPS_OF_A_GROUP;
  for (u32 k = first; k < std::min(first + WARPS_OF_A_GROUP, u32(warps.size())); ++k)
    if (!warps[k].done()) f(warps[k]);
}

// The four warps multiply together: what one of them waits for, all must have begun, and their
// reads of shared memory end for it.
Flow wait_products(Warp& w, const Ins& i) {
  Flow flow = Flow::next;
  if (!come_together(w, flow)) return flow;
  const i64 ending = i64(w.wgmma_group) - i.groups();  // groups
  const auto over = [&](u32 group) { return i64(group) < ending; };
  bool all_began = true;
  each_of_warpgroup(w, [&](const Warp& other) { all_began &= !over(other.wgmma_group); });
  if (!all_began) {
    w.look = Look{.pc = w.pc, .seen = 0, .changes = w.block->machine->changes, .waits = true};
    w.resting = true;
    return Flow::yield;
  }
  const u32 group = w.index / WARPS_OF_A_GROUP;
  u32& ended = w.clocks.products[group];
  ended = u32(std::max<i64>(ended, ending));
  u32 ended_for_all = ended;
  each_of_warpgroup(w, [&](const Warp& other) {
    ended_for_all = std::min(ended_for_all, other.clocks.products[group]);
  });
  auto& reading = w.block->reading;
  const auto finished = [&](const AsyncReads& reads) {
    if (!reads.wgmma || reads.issued.warp() / WARPS_OF_A_GROUP != group ||
        reads.group >= ended_for_all)
      return false;
    finish_async_reads(*w.block, reads, reads.by_wgmma());
    return true;
  };
  reading.erase(std::remove_if(reading.begin(), reading.end(), finished), reading.end());
  std::vector<u32> done;
  for (const auto& [pc, group] : w.wgmmas)
    if (over(group)) done.push_back(pc);
  w.wgmmas.erase(std::remove_if(w.wgmmas.begin(), w.wgmmas.end(),
                                [&](const auto& each) { return over(each.group); }),
                 w.wgmmas.end());
  for (const auto& [pc, group] : w.wgmmas)
    done.erase(std::remove(done.begin(), done.end(), pc), done.end());
  for (size_t slot = 0; slot < w.undefined.size() && w.tainted; ++slot)
    if (w.undefined[slot] && std::count(done.begin(), done.end(), w.origin[slot]))
      w.undefined[slot] = 0;
  forget_taint(w);
  w.tick();
  return Flow::next;
}

// What of shared memory is undefined is told of this instruction, just ahead of a wgmma.
Flow operands_ahead(Warp&, const Ins&) { return Flow::next; }

std::string name_of(int n8) { return "wgmma.n" + std::to_string(n8 * 8) + "."; }

bool is_multiply(const Program& p, const Ins& i) {
  const size_t pc = size_t(&i - p.code.data());
  return p.named[pc]->name.starts_with(name_of(i.vec)) && pc &&
         p.code[pc - 1].run == operands_ahead;
}

// types: of the sums and of the elements
template <class T, bool halves> void add_forms(Table& t, const std::string& types) {
  for (int n8 = 1; n8 <= 32; ++n8) {
    const std::string sums(size_t(n8 * 8 / (halves ? 4 : 2)), 'n');
    std::string name = name_of(n8), shape = "*" + sums;
    name.append(types);
    shape.append(">").append(sums);
    add(t, name + ".ss", of_memory<T, halves>, shape + "wwpi", is_multiply);
    add(t, name + ".rs", of_registers<T, halves>, shape + "nnnnwpi", is_multiply);
  }
}

template <class T, bool halves> bool runs(const Ins& i) {
  return i.run == of_memory<T, halves> || i.run == of_registers<T, halves>;
}

}  // namespace

bool is_wgmma(const Ins& i) {
  return runs<F16, false>(i) || runs<F16, true>(i) || runs<Bf16, false>(i) || runs<Tf32, false>(i);
}

void add_wgmma(Table& t) {
  add(t, "wgmma.fence", fence, ">");
  add(t, "wgmma.operands", operands_ahead, ">");
  add(t, "wgmma.commit_group", commit_products, ">");
  add(t, "wgmma.wait_group", wait_products, ">",
      [](const Program&, const Ins& i) { return i.groups() >= 0 && i.groups() <= ALL; });
  add_forms<F16, false>(t, "f32.f16");
  add_forms<F16, true>(t, "f16.f16");
  add_forms<Bf16, false>(t, "f32.bf16");
  add_forms<Tf32, false>(t, "f32.tf32");
}

}  // namespace sim
