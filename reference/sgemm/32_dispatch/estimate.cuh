// Which kernel a product gets, and how it is divided: what is estimated to take the fewest clocks.
// Plain C++, so that a test can compare its choices with the measured best.
#pragma once

#include <algorithm>
#include <cmath>

// Clocks of an H100 at 1.98 GHz. Fitted to the times of every kernel at 2336 shapes
// (docs/measurements/2026-11-27-h100-sgemm-candidates.txt), more to the choices than to the times.
constexpr double LAUNCH = 1194;   // of a launch; the rest of it is in the kernels' tiles
constexpr double BLOCK = 3.174;   // to start a block of the families SMALL and BRIEF
constexpr double DRAM = 0.7808;   // of what the data sheet says: operands and product
// To sum slices: the kernel, for each slice, bytes per clock.
constexpr double ADD_KERNEL = 6154, ADD_SLICE = 177.6, ADD_BYTES = 2050;
constexpr double PACK_KERNEL = 1524, PACK_BYTES = 960.4;  // to pack; bytes per clock
constexpr double TURN = 2.687;  // of one sum in C (rung 31), per element of a tile
// Of a value of k, where k % 4 is not 0; of SMALL where k is odd.
constexpr double UNALIGNED_SMALL = 1.092, UNALIGNED_DIRECT = 1.102, UNALIGNED_THIN = 1.912;
// Where m % 4 is not 0, DIRECT and parts of PACKED are stored in single values: bytes in a clock.
constexpr double SCALAR_STORES = 184.5;

constexpr int MOST_SHARED_TILES = 1024;  // between blocks

enum Family { SMALL, DIRECT, ASYNC, PACKED, THIN, BRIEF };

struct Kernel {
  Family family;
  int bm, bn, bk, blocks;  // of a multiprocessor
  int shared;              // bytes of a block
  // Of one block for a value of k: where it is alone, and where others fill its waits.
  double latency, issue;
  double tile;  // before and after the main loop
  int warps = 4;  // of a block; 4 where there are more
};

enum Name {
  SMALL_32x32, SMALL_64x24, SMALL_24x64, SMALL_32x64, DIRECT_128x256, ASYNC_32x64, ASYNC_64x32,
  ASYNC_48x64, ASYNC_64x48, ASYNC_64x64, ASYNC_32x96, ASYNC_48x96, ASYNC_96x48, ASYNC_96x64,
  ASYNC_64x96, ASYNC_96x96, ASYNC_80x64, ASYNC_64x80, ASYNC_160x64, ASYNC_64x160, ASYNC_48x128,
  ASYNC_128x48, ASYNC_128x64, ASYNC_64x128, ASYNC_128x128, ASYNC_256x64, PACKED_128x128, THIN_1,
  THIN_4, THIN_16, BRIEF_32x32, BRIEF_64x32, BRIEF_32x64, BRIEF_96x32, BRIEF_32x96, BRIEF_64x64,
  BRIEF_64x64_LIGHT, BRIEF_64x64_DEEP, BRIEF_128x64, BRIEF_64x128, BRIEF_128x96, BRIEF_96x128,
  KERNELS
};

constexpr Kernel KERNEL[KERNELS] = {
    {SMALL, 32, 32, 64, 2, 69632, 0.3774, 20.66, 3609},
    {SMALL, 64, 24, 64, 2, 73728, 20.41, 24.97, 5279},
    {SMALL, 24, 64, 64, 2, 73728, 20.41, 24.97, 5279},
    {SMALL, 32, 64, 64, 2, 78336, 23.45, 26.07, 7862},
    {DIRECT, 128, 256, 16, 1, 125520, 257.9, 231.9, 28900},
    {ASYNC, 32, 64, 32, 2, 73808, 0.6712, 30.85, 6882},
    {ASYNC, 64, 32, 32, 2, 66640, 0.4538, 29.72, 6483},
    {ASYNC, 48, 64, 32, 1, 106576, 34.94, 32.12, 8547},
    {ASYNC, 64, 48, 32, 1, 104528, 32.63, 30.19, 9207},
    {ASYNC, 64, 64, 32, 2, 87120, 0.6236, 47.23, 8908},
    {ASYNC, 32, 96, 32, 1, 110672, 37.41, 37.41, 9401},
    {ASYNC, 48, 96, 32, 1, 159824, 42.43, 42.43, 12470},
    {ASYNC, 96, 48, 32, 1, 153680, 43.21, 43.21, 12750},
    {ASYNC, 96, 64, 32, 1, 107600, 55.56, 55.62, 12810},
    {ASYNC, 64, 96, 32, 1, 107600, 48.11, 59.55, 11930},
    {ASYNC, 96, 96, 32, 1, 153664, 75.28, 75.28, 12920},
    {ASYNC, 80, 64, 32, 1, 172112, 47.89, 47.89, 11990},
    {ASYNC, 64, 80, 32, 1, 174160, 46.4, 46.4, 12900},
    {ASYNC, 160, 64, 32, 1, 168000, 86.34, 86.34, 16570},
    {ASYNC, 64, 160, 32, 1, 174144, 83.85, 83.85, 16460},
    {ASYNC, 48, 128, 32, 1, 117840, 56.91, 56.91, 12510},
    {ASYNC, 128, 48, 32, 1, 117840, 55.32, 55.32, 14340},
    {ASYNC, 128, 64, 32, 1, 135248, 76.45, 61.38, 13040},
    {ASYNC, 64, 128, 32, 1, 139344, 73.48, 70.26, 13540},
    {ASYNC, 128, 128, 16, 2, 67648, 2.363, 165.7, 15450},
    {ASYNC, 256, 64, 16, 1, 210048, 143.3, 143.3, 16850},
    {PACKED, 128, 128, 24, 2, 98368, 262.6, 14.71, 27970},
    {THIN, 1, 16, 512, 8, 2048, 0.09, 0.09, 5.547},
    {THIN, 4, 16, 512, 8, 8192, 0.09, 0.09, 4930},
    {THIN, 16, 32, 256, 8, 16384, 11.41, 10.83, 8328},
    {BRIEF, 32, 32, 8, 12, 9216, 79.32, 19.75, 0.1565, 2},
    {BRIEF, 64, 32, 8, 10, 13312, 75.31, 36.28, 1.574, 2},
    {BRIEF, 32, 64, 8, 10, 13312, 69.22, 31.91, 1557, 2},
    {BRIEF, 96, 32, 8, 8, 17408, 3.21, 47.96, 4003, 2},
    {BRIEF, 32, 96, 8, 8, 17408, 4.055, 47.27, 4962, 2},
    {BRIEF, 64, 64, 8, 8, 17408, 70.47, 47.64, 8214, 2},
    {BRIEF, 64, 64, 8, 5, 17408, 86.79, 53.33, 3214},
    {BRIEF, 64, 64, 16, 5, 26112, 49.98, 51.97, 6733},
    {BRIEF, 128, 64, 16, 4, 38400, 140.8, 89.67, 8989},
    {BRIEF, 64, 128, 16, 4, 38400, 129.3, 88.47, 10360},
    {BRIEF, 128, 96, 8, 3, 29696, 85.9, 135.7, 14130},
    {BRIEF, 96, 128, 8, 3, 29696, 223.5, 119.9, 13350},
};

struct Device {
  int sms, shared;  // bytes, of a block
  bool bulk;        // copies of packed operands: sm_90
  double dram;      // bytes in a clock, as the data sheet has it
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

  // Of the places in as many waves as it takes.
  static double filled(int blocks, int slots) {
    return double(blocks) / (double(ceil_div(blocks, slots)) * slots);
  }
  int tiles(const Kernel& x) const { return ceil_div(m, x.bm) * ceil_div(n, x.bn); }
  int padded(const Kernel& x, int depth) const { return ceil_div(depth, x.bk) * x.bk; }
  double traffic() const {
    return 4.0 * (double(m) * k + double(n) * k + double(m) * n) / (DRAM * device.dram);
  }

  double slow(const Kernel& x) const {
    if (x.family == SMALL) return k % 2 ? UNALIGNED_SMALL : 1;
    if (k % 4 == 0) return 1;
    return x.family == DIRECT ? UNALIGNED_DIRECT : x.family == THIN ? UNALIGNED_THIN : 1;
  }
  double stores(const Kernel& x) const {
    return m % 4 && (x.family == DIRECT || x.family == PACKED) ? 4.0 * m * n / SCALAR_STORES : 0;
  }
  double added(int slices) const {
    return slices == 1 ? 0
                       : ADD_KERNEL + slices * ADD_SLICE + 4.0 * m * n * (slices + 1) / ADD_BYTES;
  }

  // Of a value of k, where a multiprocessor has `count` blocks at a time: the larger of latency and
  // issue, smoothly. The warps go round four schedulers, of which the busiest counts.
  static double at_a_time(const Kernel& x, int count) {
    const double issue = ceil_div(count * x.warps, 4) * 4 / x.warps * x.issue;
    const double a = x.latency * x.latency, b = issue * issue;
    return std::sqrt(std::sqrt(a * a + b * b));
  }
  // Of a value of k, where the busiest multiprocessor has `count` blocks.
  static double per_k(const Kernel& x, int count) {
    const int rest = count % x.blocks;
    return count / x.blocks * at_a_time(x, x.blocks) + (rest ? at_a_time(x, rest) : 0);
  }

  // Where every tile, or a slice of it, is one block's.
  double whole(const Kernel& x, int slices) const {
    const int blocks = tiles(x) * slices, count = ceil_div(blocks, device.sms);
    const double product = ceil_div(count, x.blocks) * x.tile +
                           padded(x, ceil_div(k, slices)) * per_k(x, count) * slow(x);
    return LAUNCH + (x.family == SMALL || x.family == BRIEF ? BLOCK * blocks : 0) +
           std::max(product, traffic()) + stores(x) + added(slices);
  }

  // Where some tiles, or all, are shared.
  double shared(const Kernel& x, int whole, int sharers) const {
    const int depth = padded(x, k), left = tiles(x) - whole;
    const double waves = whole / (device.sms * x.blocks), run = double(left) * depth / sharers;
    const int turns = sharers > left ? ceil_div(sharers, left) : 1;
    const double product = waves * (x.tile + depth * per_k(x, x.blocks) * slow(x)) +
                           run * per_k(x, ceil_div(sharers, device.sms)) * slow(x) +
                           ceil_div(left, sharers) * x.tile + turns * TURN * x.bm * x.bn;
    return LAUNCH + std::max(product, traffic()) + stores(x);
  }

  double packed(const Kernel& x) const {
    const int slots = device.sms * x.blocks, all = tiles(x), left = all % slots;
    const int depth = padded(x, k), count = ceil_div(all, device.sms);
    const double lines = double(ceil_div(m, x.bm)) * x.bm + double(ceil_div(n, x.bn)) * x.bn;
    const bool shares = left > 0 && (long long)(slots - left) * k > 256LL * slots;
    const double scalar = shares ? double(left) / all : 0;  // of the stores
    const double before = LAUNCH + scalar * stores(x) + PACK_KERNEL + 8.0 * k * lines / PACK_BYTES;
    if (shares)
      return before + all / slots * (x.tile + depth * per_k(x, x.blocks)) +
             double(left) * depth / slots * per_k(x, x.blocks) + x.tile +
             2.0 * (left + slots) * x.bm * x.bn / ADD_BYTES;
    return before + ceil_div(count, x.blocks) * x.tile + depth * per_k(x, count);
  }

  double thin(const Kernel& x) const {
    const int rounds = ceil_div(ceil_div(std::max(m, n), x.bn), device.sms);
    return LAUNCH + x.tile + std::max(traffic(), rounds * k * x.issue * slow(x));
  }

  Choice best() const {
    Choice found = {BRIEF_64x64, 1, 0, 0, 1e300};
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
      // Parts of every tile for so many blocks, no more; each of two K blocks and of 64 at least.
      const int depth = std::max(2 * x.bk, 64);
      auto split = [&](int least, int places, auto offer_parts) {
        least = std::min(least, 63 * all);  // a single tile has 64 at most
        for (int parts = std::max(2, least / all); parts <= 64; ++parts)
          if (all * parts > least && all * parts <= places && parts * depth <= k)
            offer_parts(parts);
      };
      if (x.family == BRIEF && ceil_div(n, x.bn) >= 65536) continue;
      if (x.family == SMALL || x.family == BRIEF) {
        offer(name, 1, 0, 0, whole(x, 1));
        if (all < slots)
          split(device.sms / 2, slots,
                [&](int parts) { offer(name, parts, 0, 0, whole(x, parts)); });
        // More blocks than places, where slices fill the last wave.
        const double least = std::max(0.85, filled(all, slots));
        for (int parts = 2; parts <= 12 && parts * depth <= k; ++parts)
          if (all * parts > slots && all * parts <= 8 * slots && filled(all * parts, slots) > least)
            offer(name, parts, 0, 0, whole(x, parts));
      } else if (x.family == DIRECT || x.family == ASYNC) {
        if (device.shared <= 64 << 10) continue;  // sm_75: the loop would not fit the registers
        offer(name, 1, all, 0, whole(x, 1));
        auto share = [&](int left, int sharers) {
          const long long k_blocks = (long long)left * ceil_div(k, x.bk);
          const int most = int(std::min<long long>(sharers, k_blocks));
          offer(name, 1, all - left, most, shared(x, all - left, most));
        };
        if (all < slots) split(slots / 2, slots, [&](int parts) { share(all, all * parts); });
        if (x.family == ASYNC && all < slots)
          split(device.sms / 2, slots,
                [&](int parts) { offer(name, parts, all, 0, whole(x, parts)); });
        if (all % slots && all < 3 * slots && all <= MOST_SHARED_TILES) share(all, slots);
        if (all % slots && all > slots) share(all % slots, slots);
      } else if (x.family == PACKED) {
        if (device.bulk && k >= 64) offer(name, 1, 0, 0, packed(x));
      } else if (std::min(m, n) <= x.bm) {
        offer(name, 1, 0, 0, thin(x));
      }
    }
  }
};
