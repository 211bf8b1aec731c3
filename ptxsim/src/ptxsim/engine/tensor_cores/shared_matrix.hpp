// Matrices in shared memory that wgmma reads.
#pragma once

#include <algorithm>
#include <vector>

#include "../checks/async_proxy.hpp"
#include "../memory/access.hpp"
#include "products.hpp"

namespace sim {

constexpr u32 CHUNK = 16;  // bytes

// A matrix as a descriptor tells of it; M or N and K count its elements.
class Matrix {
 public:
  Matrix(Warp& w, u64 descriptor, bool transposed)
      : w_(w), start_(field(descriptor, 0)), leading_(field(descriptor, 16)),
        stride_(field(descriptor, 32)), base_(u32(descriptor >> 49 & 7)),
        bits_("\0\3\2\1"[descriptor >> 62]), transposed_(transposed), reader_(w, 0) {}

  // Where the 16 bytes lie that hold elements (mn, k) and its neighbours; `each` of them.
  u32 place(u32 mn, u32 k, u32 each) const {
    const u32 quads = 1u << bits_;  // that a row of the pattern has
    u32 at = start_;
    if (!transposed_) {
      at += mn / 8 * stride_ + mn % 8 * quads * CHUNK + k / each * (bits_ ? CHUNK : leading_);
    } else {
      const u32 quad = mn / each;
      at += bits_ ? quad % quads * CHUNK + quad / quads * leading_ + k / 8 * stride_
                  : quad * stride_ + k / 8 * leading_;
      at += k % 8 * quads * CHUNK;
    }
    const u32 row = (at >> 7) - base_;
    return at ^ (row & (quads - 1)) << 4;
  }

  // The 16 bytes there, or null, with a finding, where they lie in no array.
  const u8* read(u32 address, bool& undefined) {
    if (!within(address, CHUNK, low_, high_ - low_) && !find(address)) return nullptr;
    reader_.read(address);
    undefined = reader_.take_undefined();
    return w_.block->shared.data() + address;
  }
  void keep() { reader_.keep(w_.wgmma_group, true); }

 private:
  static u32 field(u64 descriptor, int at) { return u32(descriptor >> at & 0x3fff) << 4; }

  bool find(u32 address) {
    Access one;
    one.mask = 1;
    one.bytes = CHUNK;
    std::fill(one.at, one.at + LANES, address);
    settle_shared(w_, one, false);
    if (!one.mask) return false;
    const Hint& hint = w_.program->hints[w_.pc];
    low_ = u32(hint.low);
    high_ = u32(hint.high);
    return true;
  }

  Warp& w_;
  u32 start_, leading_, stride_, base_, bits_;
  bool transposed_;
  u32 low_ = 0, high_ = 0;  // of the array that was read last
  AsyncReader reader_;
};

// Reads `count` rows (of A) or columns (of B) of K elements from `first` on. Returns which of them
// hold something undefined.
template <class T, int K>
void read_matrix(Matrix& m, bool transposed, u32 first, u32 count, std::vector<Vector<T, K>>& to,
                 std::vector<bool>& bad) {
  constexpr u32 EACH = CHUNK / T::bytes;
  const u32 mn_step = transposed ? EACH : 1, k_step = transposed ? 1 : EACH;
  for (u32 mn = 0; mn < count; mn += mn_step)
    for (u32 k = 0; k < K; k += k_step) {
      bool undefined = false;
      const u8* from = m.read(m.place(first + mn, k, EACH), undefined);
      for (u32 e = 0; e < EACH; ++e) {
        u32 raw = 0;
        if (from) std::memcpy(&raw, from + e * T::bytes, T::bytes);
        const u32 at = transposed ? mn + e : mn, depth = transposed ? k : k + e;
        to[at].set(int(depth), T::bits(raw, 0));
        if (undefined) bad[at] = true;
      }
    }
}

}  // namespace sim
