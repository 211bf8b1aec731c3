// tex: reads through texture objects, as the CUDA programming guide describes them. A handle is the
// address of a Texture in global memory. How weights are rounded, and that tex1Dfetch finds 0
// outside whatever the address mode, is what an H100 did (2026-11-25); all else that CUDA's guide
// leaves open is what an H200 did (2026-11-29), to the last bit of 5,376 samples.
#include "texture.hpp"

#include <algorithm>
#include <cmath>

#include "../arithmetic/half.hpp"
#include "../checks/global_races.hpp"
#include "../checks/undefined.hpp"
#include "../program/operations.hpp"
#include "access.hpp"

namespace sim {
namespace {

enum AddressMode : u8 { WRAP, CLAMP, MIRROR, BORDER };
enum TexelType : u8 { UNSIGNED, INTEGER, FLOATING };
constexpr i64 SHARES = 256;  // of a texel, in linear filtering
constexpr double FARTHEST = 1 << 30;

bool is_float(const Texture& t) { return t.type == FLOATING || t.reads_normalized; }

bool is_sound(const Texture& t) {
  const auto is_size = [](u32 n) { return n == 1 || n == 2 || n == 4; };
  u64 texels = std::max(t.layers, 1u);
  for (const u32 extent : t.extents) {
    texels *= extent;
    if (!texels || texels > 1u << 30) return false;
  }
  for (const u8 mode : t.modes)
    if (mode > BORDER) return false;
  return t.magic == TEXTURE_MAGIC && t.dimensions - 1u < 3 && t.layers <= 1u << 16 &&
         is_size(t.channels) && is_size(t.element) && t.type <= FLOATING &&
         (!t.linear || is_float(t));
}

// The texture object that a lane's handle names; a finding where it is none for this instruction.
bool read_texture(Warp& w, const Ins& i, int lane, u64 handle, bool floats, Texture& t) {
  const bool there = find_texture(w, handle, t) && !t.surface;
  const bool layered = names_layer(i), fits = there && layered == (t.layers > 0);
  if (fits && t.dimensions == i.vec && is_float(t) == floats) return true;
  Event e = event_at(w, BAD_TEXTURE, lane);
  e.address = handle;
  set_details(e, {there ? t.dimensions : 0, there && !fits ? -1 : i.vec});
  w.block->machine->report(e);
  return false;
}

// The first texel that a coordinate falls on, which may lie outside, and the share of the next one.
struct Spot { i64 first, share; };

bool clamps(const Texture& t, u8 mode) {
  return mode == CLAMP || (mode != BORDER && !t.normalized);
}

Spot spot_of(const Texture& t, u8 mode, u32 extent, double at) {
  if (t.normalized && (mode == WRAP || mode == MIRROR)) at -= 2 * std::floor(at / 2);
  if (t.normalized) at *= extent;
  at = std::isnan(at) ? 0 : std::clamp(at, -FARTHEST, FARTHEST);
  if (!t.linear) return {i64(std::floor(at)), 0};
  if (clamps(t, mode)) at = std::clamp(at, 0.5, extent - 0.5);
  const i64 shares = i64(std::floor((at - 0.5) * SHARES + 0.5));
  return {shares >> 8, shares & (SHARES - 1)};
}

// The texel that stands for one outside the texture; -1: the border, which is 0.
i64 settled(const Texture& t, u8 mode, i64 at, i64 extent) {
  if (at >= 0 && at < extent) return at;
  if (mode == BORDER) return -1;
  if (clamps(t, mode)) return std::clamp<i64>(at, 0, extent - 1);
  const i64 period = mode == MIRROR ? 2 * extent : extent, place = (at % period + period) % period;
  return place < extent ? place : period - 1 - place;
}

// One channel of a texel, in the 32 bits that the instruction gives.
u32 channel(const Texture& t, const u8* from) {
  u32 bits = 0;
  std::memcpy(&bits, from, t.element);
  if (t.type == FLOATING) return t.element == 2 ? float_to_bits(float(Half{u16(bits)})) : bits;
  const u32 unused = 32 - 8 * t.element, most = ALL >> unused >> (t.type == INTEGER);
  if (t.type == INTEGER) bits = u32(i32(bits << unused) >> unused);
  if (!t.reads_normalized) return bits;
  const double value = t.type == INTEGER ? double(i32(bits)) : double(bits);
  return float_to_bits(float(std::max(value / most, -1.0)));
}

// What one lane makes of the texels next to its coordinates.
struct Sample {
  u32 texel[4];
  double sums[4];
  bool undefined;
};

void add_texel(Warp& w, int lane, const Texture& t, u64 address, double weight, Sample& sample) {
  Access a{};
  a.bytes = texel_bytes(t);
  a.mask = 1u << lane;
  std::fill(a.at, a.at + LANES, address);
  Region* const r = settle_global(w, a, GLOBAL, false);
  if (!r) return;
  const i64 index = hint_of(w, GLOBAL).region;
  check_read_only(w, lane, *r, index, address, a.bytes);
  sample.undefined |= global_read(w, lane, *r, index, address, a.bytes, false);
  remember_reads(w, r, a);
  trace(w, a, READ);
  for (int c = 0; c < t.channels; ++c) {
    sample.texel[c] = channel(t, r->at(address) + u64(c) * t.element);
    sample.sums[c] += weight * bits_to_float(sample.texel[c]);
  }
}

// at: along each dimension; the layer behind them.
struct TextureOperands { i32 texels[4], handle, at[3]; };

// The weights of the texels at the corners around a place, in shares: bit k of a corner's number
// says that it is the farther one along dimension k.
void weigh(const Spot* spots, i64* weights) {
  weights[0] = SHARES;
  for (const int axis : {2, 0, 1})
    for (int corner = 0; corner < 8; ++corner) {
      if (corner >> axis & 1) continue;
      const bool half_down = axis == 1 && !(corner & 1);
      const i64 far = (weights[corner] * spots[axis].share + SHARES / 2 - half_down) / SHARES;
      weights[corner | 1 << axis] = far;
      weights[corner] -= far;
    }
}

// floats: what it gives. fetches: its coordinates are integers, and outside is 0.
template <bool floats, bool fetches> Flow texture(Warp& w, const Ins& i) {
  const auto o = operands<TextureOperands>(i);
  for (const i32 slot : {o.handle, o.at[0], o.at[1], o.at[2]})
    check_defined(w, slot, UNDEFINED_ADDRESS, false);
  const auto coordinate = [&](int axis, int lane) -> double {
    if (fetches) return lanes<i32>(w, o.at[axis])[lane];
    return bits_to_float(lanes<u32>(w, o.at[axis])[lane]);
  };
  Sample samples[LANES] = {};
  u32 undefined = 0;
  for (u32 rest = w.exec; rest; rest &= rest - 1) {
    const int l = __builtin_ctz(rest);
    Texture t;
    if (!read_texture(w, i, l, lanes<u64>(w, o.handle)[l], floats, t)) continue;
    if (fetches) t.normalized = t.linear = 0, std::fill(t.modes, t.modes + 3, BORDER);
    Spot spots[3] = {};
    for (int axis = 0; axis < i.vec; ++axis)
      spots[axis] = spot_of(t, t.modes[axis], t.extents[axis], coordinate(axis, l));
    // A line lies in a plane, at y = 0, where a border has half the weight.
    if (t.dimensions == 1 && !t.layers && t.linear && t.modes[1] == BORDER)
      spots[1] = {-1, SHARES / 2};
    const u32 layer = t.layers ? std::min(lanes<u32>(w, o.at[i.vec])[l], t.layers - 1) : 0;
    i64 weights[8] = {};
    weigh(spots, weights);
    for (int corner = 0; corner < 8; ++corner) {
      i64 at[3];
      for (int axis = 0; axis < 3; ++axis)
        at[axis] =
            settled(t, t.modes[axis], spots[axis].first + (corner >> axis & 1), t.extents[axis]);
      if (weights[corner] && std::min({at[0], at[1], at[2]}) >= 0)
        add_texel(w, l, t, texel_address(t, u64(at[0]) * texel_bytes(t), at[1], at[2] + layer),
                  double(weights[corner]) / SHARES, samples[l]);
    }
    if (t.linear)
      for (int c = 0; c < 4; ++c) samples[l].texel[c] = float_to_bits(float(samples[l].sums[c]));
    undefined |= u32(samples[l].undefined) << l;
  }
  for (int c = 0; c < 4; ++c) {
    if (o.texels[c] < 0) continue;
    for (u32 rest = w.exec; rest; rest &= rest - 1)
      lanes<u32>(w, o.texels[c])[__builtin_ctz(rest)] = samples[__builtin_ctz(rest)].texel[c];
    if (undefined || w.tainted) mark_undefined(w, o.texels[c], undefined, w.pc);
  }
  return Flow::next;
}

}  // namespace

bool find_texture(Warp& w, u64 handle, Texture& t) {
  i64 index = -1;
  const Region* r = w.block->machine->find(handle, index);
  if (!r || !within(handle, sizeof t, r->base, r->size)) return false;
  std::memcpy(&t, r->at(handle), sizeof t);
  return is_sound(t);
}

u64 texel_address(const Texture& t, u64 byte, u64 row, u64 plane) {
  return t.address + byte + (plane * t.extents[1] + row) * t.pitch;
}

bool takes_texture(const Program&, const Ins& i) {
  const int coordinates = i.vec + names_layer(i);
  if (!i.vec || coordinates > 3) return false;
  return std::all_of(i.o + 5, i.o + 5 + coordinates, [](i32 slot) { return slot >= 0; });
}

void add_textures(Table& t) {
  add(t, "tex.f32.f32", texture<true, false>, "NNNN>wnNN", takes_texture);
  add(t, "tex.f32.s32", texture<true, true>, "NNNN>wnNN", takes_texture);
  add(t, "tex.u32.f32", texture<false, false>, "NNNN>wnNN", takes_texture);
  add(t, "tex.u32.s32", texture<false, true>, "NNNN>wnNN", takes_texture);
}

}  // namespace sim
