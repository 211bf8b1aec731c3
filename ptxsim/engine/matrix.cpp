// Tensor-core instructions and the loads that feed them, with the fragment layouts of the PTX ISA.
// Products are exact and summed in float32, which is at least as precise as the hardware.
#include <algorithm>

#include "shadow.hpp"

namespace sim {
namespace {

// Element types of A and B as 32-bit registers hold them.
struct Tf32 {
  static constexpr int per_register = 1;
  static float get(u32 reg, int) { return bits_to_float(reg & 0xffffe000u); }
};
struct F16 {
  static constexpr int per_register = 2;
  static float get(u32 reg, int k) { return float(Half{u16(reg >> 16 * k)}); }
};
struct Bf16 {
  static constexpr int per_register = 2;
  static float get(u32 reg, int k) { return float(Bfloat{u16(reg >> 16 * k)}); }
};

// 32-bit registers that one lane gives of each matrix.
template <class T, int K, bool half_accumulator> struct Registers {
  static constexpr int A = 16 * K / 32 / T::per_register, B = 8 * K / 32 / T::per_register;
  static constexpr int C = half_accumulator ? 2 : 4;
};

// m16n8kK, A row-major, B column-major. x: the operand slots d…, a…, b…, c…
template <class T, int K, bool half_accumulator> Flow mma(Warp& w, const Ins& i) {
  using R = Registers<T, K, half_accumulator>;
  constexpr int P = T::per_register, A = R::A, B = R::B, C = R::C;
  const i32* slots = i.x + i.pooled();
  float a[16][K], b[K][8], c[16][8];
  for (int l = 0; l < LANES; ++l) {
    const int group = l >> 2, within = l & 3;
    for (int r = 0; r < A; ++r)
      for (int e = 0; e < P; ++e)
        a[group + 8 * (r & 1)][within * P + e + 4 * P * (r >> 1)] =
            T::get(lanes<u32>(w, slots[C + r])[l], e);
    for (int r = 0; r < B; ++r)
      for (int e = 0; e < P; ++e)
        b[within * P + e + 4 * P * r][group] = T::get(lanes<u32>(w, slots[C + A + r])[l], e);
    for (int e = 0; e < 4; ++e) {
      const i32 slot = slots[C + A + B + (half_accumulator ? e / 2 : e)];
      const u32 reg = lanes<u32>(w, slot)[l];
      c[group + 8 * (e >> 1)][within * 2 + (e & 1)] =
          half_accumulator ? F16::get(reg, e & 1) : bits_to_float(reg);
    }
  }
  for (int row = 0; row < 16; ++row)
    for (int col = 0; col < 8; ++col) {
      double sum = c[row][col];
      for (int k = 0; k < K; ++k) sum += double(a[row][k]) * double(b[k][col]);
      c[row][col] = float(sum);
    }
  for (int l = 0; l < LANES; ++l) {
    if (!(w.exec >> l & 1)) continue;
    const int group = l >> 2, within = l & 3;
    for (int e = 0; e < 4; ++e) {
      const float value = c[group + 8 * (e >> 1)][within * 2 + (e & 1)];
      if (!half_accumulator) {
        lanes<u32>(w, slots[e])[l] = float_to_bits(value);
      } else {
        u32& reg = lanes<u32>(w, slots[e / 2])[l];
        const u32 bits = to_half(value).bits;
        reg = e & 1 ? (reg & 0xffff) | bits << 16 : bits;
      }
    }
  }
  return Flow::next;
}

template <class T, int K, bool half_accumulator> void multiply(Table& t, const char* name) {
  using R = Registers<T, K, half_accumulator>;
  t.push_back({name, mma<T, K, half_accumulator>,
               "*" + std::string(R::C, 'n') + ">" + std::string(R::A + R::B + R::C, 'n')});
}

// One destination for each of vec matrices; flags bit SIGNED: transposed.
// Lane 8q + r holds the address of row r of matrix q.
Flow ldmatrix(Warp& w, const Ins& i) {
  Ins row = i;
  row.width = 16;
  row.vec = 1;
  Access a;
  resolve_addresses(w, row, a);
  a.mask &= i.vec == 4 ? ALL : (1u << 8 * i.vec) - 1;
  if (i.space == GENERIC)
    for (u64& at : a.at) at &= OFFSET_MASK;
  drop_misaligned(w, a, SHARED, false);
  if (a.mask) settle_shared(w, a, false);
  count_shared(w, a);
  u32 undefined = 0, origin = w.pc;
  u16 matrix[4][8][8] = {};
  SharedReader reader(w);
  for (int l = 0; l < 8 * i.vec; ++l) {
    if (!(a.mask >> l & 1)) continue;
    if (reader.read(l, u32(a.at[l]), 16, true, origin)) undefined = ALL;
    std::memcpy(matrix[l / 8][l % 8], w.block->shared.data() + a.at[l], 16);
  }
  for (int q = 0; q < i.vec; ++q) {
    u32* d = lanes<u32>(w, i.element(q));
    for (int l = 0; l < LANES; ++l) {
      const int r = l / 4, c = l % 4 * 2;
      const bool transposed = i.flags & SIGNED;
      d[l] = transposed ? u32(matrix[q][c][r]) | u32(matrix[q][c + 1][r]) << 16
                        : u32(matrix[q][r][c]) | u32(matrix[q][r][c + 1]) << 16;
    }
    if (undefined || w.tainted) mark_undefined(w, i.element(q), undefined, origin);
  }
  return Flow::next;
}

}  // namespace

void add_matrix(Table& t) {
  t.push_back({"ldmatrix", ldmatrix, "NNNN>a", [](const Program&, const Ins& i) {
                 if (i.vec != 1 && i.vec != 2 && i.vec != 4) return false;
                 return std::all_of(i.o, i.o + i.vec, [](i32 o) { return o >= 0; });
               }});
  multiply<Tf32, 4, false>(t, "mma.m16n8k4.f32.tf32");
  multiply<Tf32, 8, false>(t, "mma.m16n8k8.f32.tf32");
  multiply<F16, 8, false>(t, "mma.m16n8k8.f32.f16");
  multiply<F16, 16, false>(t, "mma.m16n8k16.f32.f16");
  multiply<F16, 8, true>(t, "mma.m16n8k8.f16.f16");
  multiply<F16, 16, true>(t, "mma.m16n8k16.f16.f16");
  multiply<Bf16, 8, false>(t, "mma.m16n8k8.f32.bf16");
  multiply<Bf16, 16, false>(t, "mma.m16n8k16.f32.bf16");
}

}  // namespace sim
