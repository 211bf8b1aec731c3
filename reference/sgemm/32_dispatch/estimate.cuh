// Which kernel a product gets, and how it is divided: what is estimated to take the fewest clocks.
// Plain C++, so that a test can compare its choices with the measured best.
#pragma once

#include <algorithm>

// Clocks of an H200 at 1.9 GHz. Fitted to the times of every kernel at 70 shapes
// (docs/measurements/2026-11-22-h200-candidates.txt).
constexpr double LAUNCH = 8555;          // until the first block runs, and back
constexpr double BYTES_PER_CLOCK = 1597;  // of operands and product, from and to DRAM
constexpr double ADD_KERNEL = 7339, ADD_BYTES = 2719;     // to sum slices; bytes per clock
constexpr double PACK_KERNEL = 6324, PACK_BYTES = 2241;   // to pack; bytes per clock
constexpr double SHARED_TAIL = 17865;     // to sum the parts of rung 30's shared tiles
constexpr double TURN = 0.667;            // of one sum in C (rung 31), per element of a tile
constexpr double SMALL_UNALIGNED = 1.21, DIRECT_UNALIGNED = 1.16;  // where k % 4 is not 0

enum Family { SMALL, DIRECT, PACKED, THIN };

struct Kernel {
  Family family;
  int bm, bn, bk, blocks;  // of a multiprocessor
  int shared;              // bytes of a block
  // Of one block for a value of k: where it is alone, and where others fill its waits.
  double latency, issue;
  double tile;  // before and after the main loop
};

enum Name {
  SMALL_32x32, SMALL_48x48, SMALL_64x32, SMALL_64x48, SMALL_64x64, SMALL_96x64, SMALL_96x80,
  SMALL_128x128, SMALL_64x32_SHALLOW, DIRECT_128x256, DIRECT_128x64, DIRECT_64x128,
  DIRECT_128x128, PACKED_128x64,
  PACKED_128x128, THIN_4,
  KERNELS
};

constexpr Kernel KERNEL[KERNELS] = {
    {SMALL, 32, 32, 64, 2, 69632, 10.8, 17.9, 643},
    {SMALL, 48, 48, 64, 2, 104448, 34.4, 33.9, 2211},
    {SMALL, 64, 32, 64, 2, 104448, 21.4, 32.6, 1197},
    {SMALL, 64, 48, 64, 1, 121856, 45.3, 22.0, 2040},
    {SMALL, 64, 64, 64, 1, 139264, 55.2, 30.2, 3259},
    {SMALL, 96, 64, 64, 1, 174080, 68.1, 31.4, 5839},
    {SMALL, 96, 80, 64, 1, 143616, 88.5, 63.9, 5151},
    {SMALL, 128, 128, 32, 1, 147456, 188.5, 95.7, 3479},
    {SMALL, 64, 32, 64, 1, 52224, 22.5, 34.2, 1257},  // two stages, for sm_75; 5 % slower by guess
    {DIRECT, 128, 256, 16, 1, 125520, 291.3, 254.0, 8708},
    {DIRECT, 128, 64, 32, 1, 102464, 68.1, 88.0, 9032},
    {DIRECT, 64, 128, 32, 1, 102464, 86.0, 82.3, 9441},
    {DIRECT, 128, 128, 16, 2, 50736, 179.7, 155.9, 11118},
    {PACKED, 128, 64, 64, 1, 196672, 69.8, 67.5, 6725},
    {PACKED, 128, 128, 24, 2, 98368, 158.2, 137.9, 8445},
    {THIN, 4, 16, 512, 8, 32768, 0.09, 0.09, 3007},
};

constexpr int FEW_LINES = 4;       // that THIN takes
constexpr int LINES_PER_BLOCK = 16;

struct Device {
  int sms, shared;  // bytes, of a block
  bool bulk;        // copies of packed operands: sm_90
};

struct Choice {
  Name kernel;
  int slices;          // of K, which another kernel sums
  int whole, sharers;  // DIRECT: rung 31's division
  double clocks;
};

struct Estimate {
  int m, n, k;
  Device device;

  static int ceil_div(int a, int b) { return (a + b - 1) / b; }

  int tiles(const Kernel& x) const { return ceil_div(m, x.bm) * ceil_div(n, x.bn); }
  int padded(const Kernel& x, int depth) const { return ceil_div(depth, x.bk) * x.bk; }
  double traffic() const {
    return 4.0 * (double(m) * k + double(n) * k + double(m) * n) / BYTES_PER_CLOCK;
  }

  // Of a value of k, where the busiest multiprocessor has `count` blocks.
  static double per_k(const Kernel& x, int count) {
    const int rest = count % x.blocks;
    return count / x.blocks * std::max(x.latency, x.blocks * x.issue) +
           (rest ? std::max(x.latency, rest * x.issue) : 0);
  }

  double small(const Kernel& x, int slices) const {
    const int count = ceil_div(tiles(x) * slices, device.sms);
    const double slow = k % 4 == 0 ? 1 : SMALL_UNALIGNED;
    const double product = ceil_div(count, x.blocks) * x.tile +
                           padded(x, ceil_div(k, slices)) * per_k(x, count) * slow;
    const double sum =
        slices > 1 ? ADD_KERNEL + 4.0 * m * n * (slices + 1) / ADD_BYTES : 0;
    return LAUNCH + std::max(product, traffic()) + sum;
  }

  double direct(const Kernel& x, int whole, int sharers) const {
    const double slow = k % 4 == 0 ? 1 : DIRECT_UNALIGNED;
    const int depth = padded(x, k), left = tiles(x) - whole;
    if (left == 0) {
      const int count = ceil_div(whole, device.sms);
      const double product =
          ceil_div(count, x.blocks) * x.tile + depth * per_k(x, count) * slow;
      return LAUNCH + std::max(product, traffic());
    }
    const double waves = whole / (device.sms * x.blocks), run = double(left) * depth / sharers;
    const int turns = sharers > left ? ceil_div(sharers, left) : 1;
    const double product = waves * (x.tile + depth * per_k(x, x.blocks) * slow) +
                           run * per_k(x, ceil_div(sharers, device.sms)) * slow + 2 * x.tile +
                           turns * TURN * x.bm * x.bn;
    return LAUNCH + std::max(product, traffic());
  }

  double packed(const Kernel& x) const {
    const int slots = device.sms * x.blocks, all = tiles(x), left = all % slots;
    const int depth = padded(x, k), count = ceil_div(all, device.sms);
    const double lines = double(ceil_div(m, x.bm)) * x.bm + double(ceil_div(n, x.bn)) * x.bn;
    const double before = LAUNCH + PACK_KERNEL + 8.0 * k * lines / PACK_BYTES;
    if (x.blocks > 1 && left > 0 && (long long)(slots - left) * k > 256LL * slots)
      return before + all / slots * (x.tile + depth * per_k(x, x.blocks)) +
             double(left) * depth / slots * per_k(x, x.blocks) + x.tile + SHARED_TAIL +
             2.0 * (left + slots) * x.bm * x.bn / ADD_BYTES;
    return before + ceil_div(count, x.blocks) * x.tile + depth * per_k(x, count);
  }

  double thin(const Kernel& x) const {
    const int rounds = ceil_div(ceil_div(std::max(m, n), LINES_PER_BLOCK), device.sms);
    return LAUNCH + std::max(traffic(), rounds * k * x.issue);
  }

  Choice best() const {
    Choice found = {SMALL_64x32_SHALLOW, 1, 0, 0, 1e300};
    auto offer = [&](int name, int slices, int whole, int sharers, double clocks) {
      if (clocks < found.clocks) found = {Name(name), slices, whole, sharers, clocks};
    };
    for (int name = 0; name < KERNELS; ++name) {
      const Kernel& x = KERNEL[name];
      if (x.shared > device.shared) continue;
      const int all = tiles(x), slots = device.sms * x.blocks;
      // As many parts of every tile as there are places, and no more; but twice the depth of a
      // K block each.
      auto split = [&](int places, auto offer_parts) {
        for (int parts = std::max(2, places / 2 / all); parts <= 64; ++parts)
          if (all * parts > places / 2 && all * parts <= places && parts * 2 * x.bk <= k)
            offer_parts(parts);
      };
      if (x.family == SMALL) {
        offer(name, 1, 0, 0, small(x, 1));
        if (all < device.sms)
          split(device.sms, [&](int parts) { offer(name, parts, 0, 0, small(x, parts)); });
      } else if (x.family == DIRECT) {
        if (device.shared <= 64 << 10) continue;  // sm_75: the loop would not fit the registers
        offer(name, 1, all, 0, direct(x, all, 0));
        auto share = [&](int left, int sharers) {
          const long long k_blocks = (long long)left * ceil_div(k, x.bk);
          const int most = int(std::min<long long>(sharers, k_blocks));
          offer(name, 1, all - left, most, direct(x, all - left, most));
        };
        if (all < slots) split(slots, [&](int parts) { share(all, all * parts); });
        if (all % slots && all < 3 * slots) share(all, slots);
        if (all % slots && all > slots) share(all % slots, slots);
      } else if (x.family == PACKED) {
        if (device.bulk && k >= 64) offer(name, 1, 0, 0, packed(x));
      } else if (std::min(m, n) <= FEW_LINES) {
        offer(name, 1, 0, 0, thin(x));
      }
    }
    return found;
  }
};
