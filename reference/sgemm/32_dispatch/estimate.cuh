// Which kernel a product gets, and how it is divided: what is estimated to take the fewest clocks.
// Plain C++, so that a test can compare its choices with the measured best.
#pragma once

#include <algorithm>

// Clocks of an H200 at 1.9 GHz. Fitted to the times of every kernel at 76 shapes
// (docs/measurements/2026-11-22-h200-candidates.txt).
constexpr double LAUNCH = 8370;           // until the first block runs, and back
constexpr double BYTES_PER_CLOCK = 1973;  // of operands and product, from and to DRAM
// To sum slices: the kernel, for each slice, bytes per clock.
constexpr double ADD_KERNEL = 3890, ADD_SLICE = 53.0, ADD_BYTES = 1324;
constexpr double PACK_KERNEL = 10028, PACK_BYTES = 2168;  // to pack; bytes per clock
constexpr double SHARED_TAIL = 14283;  // to sum the parts of rung 30's shared tiles
constexpr double TURN = 0.714;         // of one sum in C (rung 31), per element of a tile
constexpr double UNALIGNED = 1.239, DIRECT_UNALIGNED = 1.115;  // where k % 4 is not 0

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
  SMALL_128x128, SMALL_64x32_SHALLOW, SMALL_56x56, SMALL_64x64_TWICE, DIRECT_128x256,
  DIRECT_128x64, DIRECT_64x128, DIRECT_128x128, PACKED_128x64, PACKED_128x128, THIN_1, THIN_4, THIN_16,
  KERNELS
};

constexpr Kernel KERNEL[KERNELS] = {
    {SMALL, 32, 32, 64, 2, 69632, 18.57, 17.53, 499},
    {SMALL, 48, 48, 64, 2, 104448, 28.5, 28.5, 3779},
    {SMALL, 64, 32, 64, 2, 104448, 21.4, 29.52, 2096},
    {SMALL, 64, 48, 64, 1, 121856, 42.6, 22, 2874},
    {SMALL, 64, 64, 64, 1, 139264, 56.2, 30.2, 2532},
    {SMALL, 96, 64, 64, 1, 174080, 73.44, 31.4, 6491},
    {SMALL, 96, 80, 64, 1, 143616, 90.74, 63.9, 8691},
    {SMALL, 128, 128, 32, 1, 147456, 182.2, 95.7, 3581},
    {SMALL, 64, 32, 64, 2, 52224, 22.5, 28.88, 2833},
    {SMALL, 56, 56, 64, 2, 91392, 53.15, 39.63, 1659},
    {SMALL, 64, 64, 64, 2, 104448, 81.75, 53.65, 3442},
    {DIRECT, 128, 256, 16, 1, 125520, 290, 254, 15900},
    {DIRECT, 128, 64, 32, 1, 102464, 68.1, 85.5, 13211},
    {DIRECT, 64, 128, 32, 1, 102464, 83.89, 82.3, 13168},
    {DIRECT, 128, 128, 16, 2, 50736, 185.4, 154.8, 13271},
    {PACKED, 128, 64, 64, 1, 196672, 70.55, 70.55, 5125},
    {PACKED, 128, 128, 24, 2, 98368, 156.2, 138.7, 7150},
    {THIN, 1, 16, 512, 8, 2048, 0.09, 0.09, 0},
    {THIN, 4, 16, 512, 8, 8192, 0.09, 0.09, 1696},
    {THIN, 16, 32, 256, 8, 16384, 11.41, 11.41, 8155},
};

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
    const double slow = k % 4 == 0 ? 1 : UNALIGNED;
    const double product = ceil_div(count, x.blocks) * x.tile +
                           padded(x, ceil_div(k, slices)) * per_k(x, count) * slow;
    const double sum =
        slices > 1 ? ADD_KERNEL + slices * ADD_SLICE + 4.0 * m * n * (slices + 1) / ADD_BYTES : 0;
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
                           run * per_k(x, ceil_div(sharers, device.sms)) * slow +
                           ceil_div(left, sharers) * x.tile + turns * TURN * x.bm * x.bn;
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
    const int rounds = ceil_div(ceil_div(std::max(m, n), x.bn), device.sms);
    const double slow = k % 4 == 0 ? 1 : UNALIGNED;
    return LAUNCH + x.tile + std::max(traffic(), rounds * k * x.issue * slow);
  }

  Choice best() const {
    Choice found = {SMALL_64x32_SHALLOW, 1, 0, 0, 1e300};
    each([&](const Choice& choice) {
      if (choice.clocks < found.clocks) found = choice;
    });
    return found;
  }

  // Calls take(choice) for every kernel that fits and every division worth a thought.
  template <class Take>
  void each(Take take) const {
    auto offer = [&](int name, int slices, int whole, int sharers, double clocks) {
      take(Choice{Name(name), slices, whole, sharers, clocks});
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
        if (all < slots)
          split(slots, [&](int parts) { offer(name, parts, 0, 0, small(x, parts)); });
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
      } else if (std::min(m, n) <= x.bm) {
        offer(name, 1, 0, 0, thin(x));
      }
    }
  }
};
