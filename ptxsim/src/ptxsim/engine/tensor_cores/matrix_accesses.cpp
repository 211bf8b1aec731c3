// ldmatrix and stmatrix: lane 8q + r holds the address of row r of matrix q. movmatrix: no memory.
#include <algorithm>

#include "../checks/suspect_reads.hpp"
#include "../checks/shared_races.hpp"
#include "../checks/undefined.hpp"
#include "../memory/cost.hpp"
#include "../program/kinds.hpp"
#include "../program/operations.hpp"
#include "../schedule/divergence.hpp"

namespace sim {
namespace {

// Rows in bounds; flags bit SIGNED: transposed.
Access row_addresses(Warp& w, const Ins& i, bool write) {
  Ins row = i;
  row.width = 16;
  row.vec = 1;
  const u32 exec = w.exec;
  w.exec &= i.vec == 4 ? ALL : (1u << 8 * i.vec) - 1;
  Access a;
  resolve_addresses(w, row, a);
  w.exec = exec;
  if (!a.mask) return a;
  if (i.space == GENERIC)
    for (u64& at : a.at) at &= OFFSET_MASK;
  drop_misaligned(w, a, SHARED, write);
  if (a.mask) settle_shared(w, a, write);
  count_shared(w, a);
  return a;
}

// Which element of a matrix a lane holds in its lower (0) or upper (1) half.
struct Cellular { int row, column; };
Cellular element_of(int lane, int half, bool transposed) {
  const int r = lane / 4, c = lane % 4 * 2 + half;
  return transposed ? Cellular{c, r} : Cellular{r, c};
}

Flow ldmatrix(Warp& w, const Ins& i) {
  Flow flow = Flow::next;
  if (!come_together(w, flow)) return flow;
  const Access a = row_addresses(w, i, false);
  const bool doubted =
      w.block->machine->looks_again && doubted_lanes(w, a, 1u << w.program->shared_shift);
  u32 undefined = doubted ? ALL : 0, origin = w.pc;
  u16 matrix[4][8][8] = {};
  SharedReader reader(w);
  for (int l = 0; l < 8 * i.vec; ++l) {
    if (!(a.mask >> l & 1)) continue;
    if (!doubted && reader.read(l, u32(a.at[l]), 16, true, origin)) undefined = ALL;
    std::memcpy(matrix[l / 8][l % 8], w.block->shared.data() + a.at[l], 16);
  }
  for (int q = 0; q < i.vec; ++q) {
    u32* d = lanes<u32>(w, i.element(q));
    for (u32 rest = w.exec; rest; rest &= rest - 1) {
      const int l = __builtin_ctz(rest);
      const auto low = element_of(l, 0, i.flags & SIGNED),
                 high = element_of(l, 1, i.flags & SIGNED);
      d[l] = u32(matrix[q][low.row][low.column]) | u32(matrix[q][high.row][high.column]) << 16;
    }
    if (undefined || w.tainted) mark_undefined(w, i.element(q), undefined & w.exec, origin);
  }
  return Flow::next;
}

Flow stmatrix(Warp& w, const Ins& i) {
  Flow flow = Flow::next;
  if (!come_together(w, flow)) return flow;
  const Access a = row_addresses(w, i, true);
  for (int q = 0; q < i.vec; ++q) {
    const i32 slot = i.element(q);
    const u32* s = lanes<u32>(w, slot);
    const u32 bad = w.tainted ? w.undefined[slot] : 0;
    u16 matrix[8][8];
    for (int l = 0; l < LANES; ++l)
      for (int half = 0; half < 2; ++half) {
        const auto at = element_of(l, half, i.flags & SIGNED);
        matrix[at.row][at.column] = u16(s[l] >> 16 * half);
      }
    for (int r = 0; r < 8; ++r) {
      const int l = 8 * q + r;
      if (!(a.mask >> l & 1)) continue;
      const u32 to = u32(a.at[l]);
      std::memcpy(w.block->shared.data() + to, matrix[r], 16);
      shared_write(w, l, to, 16, false, false, bad ? w.origin[slot] : DEFINED);
    }
  }
  return Flow::next;
}

struct MoveOperands { i32 result, source; };

// Every lane gives two elements of a matrix, and takes two of its transpose.
Flow movmatrix(Warp& w, const Ins& i) {
  Flow flow = Flow::next;
  if (!come_together(w, flow)) return flow;
  const auto o = operands<MoveOperands>(i);
  const u32* source = lanes<u32>(w, o.source);
  const u32 bad = w.tainted ? w.undefined[o.source] : 0;
  u32 result[LANES] = {}, undefined = 0;
  for (int l = 0; l < LANES; ++l)
    for (int half = 0; half < 2; ++half) {
      const auto [row, column] = element_of(l, half, true);
      const int from = 4 * row + column / 2;
      result[l] |= u32(u16(source[from] >> 16 * (column % 2))) << 16 * half;
      undefined |= (bad >> from & 1) << l;
    }
  std::copy_n(result, LANES, lanes<u32>(w, o.result));
  if (w.tainted) mark_undefined(w, o.result, undefined, w.origin[o.source]);
  return Flow::next;
}

bool is_matrix_access(const Program&, const Ins& i) {
  if (i.vec != 1 && i.vec != 2 && i.vec != 4) return false;
  return std::all_of(i.o, i.o + i.vec, [](i32 o) { return o >= 0; });
}

// --- wmma: its loads and stores are made of ld and st; this is what they ask for together

struct PitchOperands { i32 pitch; };  // elements from one row or column to the next
constexpr u32 ROW_ALIGNMENT = 16;

// All lanes take part; the tile and each of its rows begin at multiples of ROW_ALIGNMENT. width: of
// an element; vec: 2 of a store
Flow begin_tile(Warp& w, const Ins& i) {
  Flow flow = Flow::next;
  if (!come_together(w, flow)) return flow;
  Access a;
  resolve_addresses(w, i, a);
  a.bytes = ROW_ALIGNMENT;
  const u32* pitch = lanes<u32>(w, operands<PitchOperands>(i).pitch);
  const u32 bytes = pitch[a.first()] * i.width;
  const bool shared = i.space == SHARED || (i.space == GENERIC && a.at[a.first()] >> 56 == 1);
  if (bytes % ROW_ALIGNMENT && !(a.at[a.first()] % ROW_ALIGNMENT))
    for (u64& at : a.at) at += bytes;
  a.mask = 1u << a.first();
  drop_misaligned(w, a, shared ? SHARED : GLOBAL, i.vec == 2);
  w.tick();  // all lanes have come: what they did before is ordered on every GPU
  return Flow::next;
}

}  // namespace

bool is_load_matrix(const Ins& i) { return i.run == ldmatrix; }

void add_matrix_accesses(Table& t) {
  add(t, "ldmatrix", ldmatrix, "NNNN>a", is_matrix_access);
  add(t, "stmatrix", stmatrix, ">NNNNa", is_matrix_access);
  add(t, "movmatrix", movmatrix, "n>n");
  add(t, "wmma.tile", begin_tile, ">n---a");
}

}  // namespace sim
