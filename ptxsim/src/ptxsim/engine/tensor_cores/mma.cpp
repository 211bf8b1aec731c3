// mma, with the fragment layouts of the PTX ISA. products.hpp says how sums are rounded.
#include "../checks/undefined.hpp"
#include "../machine/machine.hpp"
#include "../program/operations.hpp"
#include "../schedule/divergence.hpp"
#include "products.hpp"
#include "undefined_fragments.hpp"

namespace sim {
namespace {

// 32-bit registers that one lane gives of each matrix.
struct Registers {
  int a, b, c;

  template <class T> static constexpr Registers of(int k, bool half_accumulator) {
    constexpr int each = int(T::per_register);
    return {16 * k / 32 / each, 8 * k / 32 / each, half_accumulator ? 2 : 4};
  }
};

// Element e of what a lane holds of C or D, in halves or in floats.
float accumulated(Warp& w, const i32* slots, int lane, int e, bool halves) {
  const u32 reg = lanes<u32>(w, slots[halves ? e / 2 : e])[lane];
  return halves ? F16::value(F16::bits(reg, e & 1)) : bits_to_float(reg);
}
void accumulate(Warp& w, const i32* slots, int lane, int e, bool halves, float value) {
  if (!halves) {
    lanes<u32>(w, slots[e])[lane] = float_to_bits(value);
    return;
  }
  u32& reg = lanes<u32>(w, slots[e / 2])[lane];
  const u32 bits = to_half(value).bits;
  reg = e & 1 ? (reg & 0xffff) | bits << 16 : (reg & 0xffff0000u) | bits;
}

void spread_undefined(Warp& w, const i32* slots, const Registers& n, bool half_accumulator) {
  UndefinedFragments found;
  for (int r = 0; r < n.a; ++r) found.add_a(w, slots[n.c + r], 8 * (r & 1));
  for (int r = 0; r < n.b; ++r) found.add_b(w, slots[n.c + n.a + r]);
  for (int c = 0; c < n.c; ++c) {
    const i32 start = slots[n.c + n.a + n.b + c];
    u32 bad = w.undefined[start];
    const u32 origin = bad ? w.origin[start] : found.origin;
    bad |= half_accumulator ? found.of_sum(2 * c) | found.of_sum(2 * c + 1) : found.of_sum(c);
    mark_undefined(w, slots[c], bad & w.exec, origin);
  }
}

// m16n8kK, A row-major, B column-major. x: the operand slots d…, a…, b…, c…
template <class T, int K, bool half_accumulator> Flow mma(Warp& w, const Ins& i) {
  Flow flow = Flow::next;
  if (!come_together(w, flow)) return flow;
  if (w.block->machine->sampling) return Flow::next;  // no address depends on the product
  constexpr Registers count = Registers::of<T>(K, half_accumulator);
  constexpr int P = T::per_register, A = count.a, B = count.b, C = count.c;
  const i32* slots = i.x + i.pooled();
  Vector<T, K> a[16], b[8];
  float d[LANES][4];
  for (int l = 0; l < LANES; ++l) {
    const int group = l >> 2, within = l & 3;
    for (int r = 0; r < A; ++r)
      for (int e = 0; e < P; ++e)
        a[group + 8 * (r & 1)].set(within * P + e + 4 * P * (r >> 1),
                                   T::bits(lanes<u32>(w, slots[C + r])[l], e));
    for (int r = 0; r < B; ++r)
      for (int e = 0; e < P; ++e)
        b[group].set(within * P + e + 4 * P * r, T::bits(lanes<u32>(w, slots[C + A + r])[l], e));
  }
  for (int l = 0; l < LANES; ++l)
    for (int e = 0; e < 4; ++e)
      d[l][e] = sum_of_products<T, K, half_accumulator>(
          a[(l >> 2) + 8 * (e >> 1)], b[(l & 3) * 2 + (e & 1)],
          accumulated(w, slots + C + A + B, l, e, half_accumulator));
  if (w.tainted) spread_undefined(w, slots, count, half_accumulator);
  for (u32 rest = w.exec; rest; rest &= rest - 1)
    for (int e = 0, l = __builtin_ctz(rest); e < 4; ++e)
      accumulate(w, slots, l, e, half_accumulator, d[l][e]);
  return Flow::next;
}

void add_form(Table& t, const char* name, Handler handler, const Registers& count) {
  const std::string sums(count.c, 'n'), factors(count.a + count.b, 'n');
  add(t, name, handler, "*" + sums + ">" + factors + sums);
}
template <class T, int K, bool half_accumulator> void add_mma_form(Table& t, const char* name) {
  add_form(t, name, mma<T, K, half_accumulator>, Registers::of<T>(K, half_accumulator));
}

// How mma.m8n8k4 reads its matrices, and which sums are halves.
struct Quads { bool a_rows, b_rows, half_result, half_start; };

// m8n8k4: four products, each of the lanes 4p to 4p + 3 and 4p + 16 to 4p + 19.
Flow mma_of_quads(Warp& w, const Ins& i, const Quads& form) {
  Flow flow = Flow::next;
  if (!come_together(w, flow)) return flow;
  constexpr int K = 4;
  const i32 *d = i.x + i.pooled(), *from_a = d + (form.half_result ? 4 : 8), *from_b = from_a + 2,
            *c = from_b + 2;
  Vector<F16, K> a[4][8], b[4][8];
  for (int l = 0; l < LANES; ++l)
    for (int e = 0; e < 4; ++e) {
      const int pair = l % 16 / 4, at = l % 4, high = l / 16 * 4;
      const u32 of_a = F16::bits(lanes<u32>(w, from_a[e / 2])[l], e & 1);
      const u32 of_b = F16::bits(lanes<u32>(w, from_b[e / 2])[l], e & 1);
      form.a_rows ? a[pair][at + high].set(e, of_a) : a[pair][e + high].set(at, of_a);
      form.b_rows ? b[pair][e + high].set(at, of_b) : b[pair][at + high].set(e, of_b);
    }
  // Where element e of a lane's accumulator lies; halves and floats differ.
  const auto row = [](int l, int e, bool halves) {
    return (halves ? l % 4 : (l & 1) + (e & 2)) + l / 16 * 4;
  };
  const auto column = [](int l, int e, bool halves) {
    return halves ? e : (e & 4) + (l & 2) + (e & 1);
  };
  float start[4][8][8];
  for (int l = 0; l < LANES; ++l)
    for (int e = 0; e < 8; ++e)
      start[l % 16 / 4][row(l, e, form.half_start)][column(l, e, form.half_start)] =
          accumulated(w, c, l, e, form.half_start);
  for (u32 rest = w.exec; rest; rest &= rest - 1)
    for (int e = 0, l = __builtin_ctz(rest); e < 8; ++e) {
      const bool halves = form.half_result;
      const int pair = l % 16 / 4, r = row(l, e, halves), n = column(l, e, halves);
      const auto sum = halves ? sum_of_products<F16, K, true> : sum_of_products<F16, K, false>;
      accumulate(w, d, l, e, halves, sum(a[pair][r], b[pair][n], start[pair][r][n]));
    }
  return Flow::next;
}

template <bool a_rows, bool b_rows, bool half_result, bool half_start>
Flow run_quads(Warp& w, const Ins& i) {
  return mma_of_quads(w, i, {a_rows, b_rows, half_result, half_start});
}

// types: of the result and of the start
template <bool half_result, bool half_start> void multiply_quads(Table& t,
                                                                 const std::string& types) {
  const std::string shape =
      "*" + std::string(half_result ? 4 : 8, 'n') + ">nnnn" + std::string(half_start ? 4 : 8, 'n');
  const std::string name = "mma.m8n8k4.";
  add(t, name + "row.row." + types, run_quads<true, true, half_result, half_start>, shape);
  add(t, name + "row.col." + types, run_quads<true, false, half_result, half_start>, shape);
  add(t, name + "col.row." + types, run_quads<false, true, half_result, half_start>, shape);
  add(t, name + "col.col." + types, run_quads<false, false, half_result, half_start>, shape);
}

}  // namespace

void add_mma(Table& t) {
  add_mma_form<Tf32, 4, false>(t, "mma.m16n8k4.f32.tf32");
  add_mma_form<Tf32, 8, false>(t, "mma.m16n8k8.f32.tf32");
  add_mma_form<F16, 8, false>(t, "mma.m16n8k8.f32.f16");
  add_mma_form<F16, 16, false>(t, "mma.m16n8k16.f32.f16");
  add_mma_form<F16, 8, true>(t, "mma.m16n8k8.f16.f16");
  add_mma_form<F16, 16, true>(t, "mma.m16n8k16.f16.f16");
  add_mma_form<Bf16, 8, false>(t, "mma.m16n8k8.f32.bf16");
  add_mma_form<Bf16, 16, false>(t, "mma.m16n8k16.f32.bf16");
  multiply_quads<false, false>(t, "f32.f32");
  multiply_quads<false, true>(t, "f32.f16");
  multiply_quads<true, false>(t, "f16.f32");
  multiply_quads<true, true>(t, "f16.f16");
}

}  // namespace sim
