// Which kernel a product gets, and how it is divided: what is estimated to take the fewest clocks.
// Plain C++, so that a test can compare its choices with the measured best.
#pragma once

#include <algorithm>
#include <cmath>

// Clocks of an H100 at 1.98 GHz. Fitted to the times of every kernel at 2000 shapes (some are in
// tests/ladder/data/h100_candidates.txt), more to the choices than to the times. The program that
// fitted them was not kept: the fit cannot be repeated.
constexpr double LAUNCH = 1165;   // of a launch; the rest of it is in the kernels' tiles
constexpr double BLOCK = 3.966;   // to start a block of the families SMALL and BRIEF
// Of what the data sheet says: operands, and the product, much of which stays in the L2.
constexpr double DRAM = 0.787, WRITE = 7.606;
// The part of product or memory, the shorter, that the longer does not hide; SMALL hides it.
constexpr double EXPOSED = 0.3508;
// To sum slices: the kernel, for each slice, bytes per clock.
constexpr double ADD_KERNEL = 5718, ADD_SLICE = 164.9, ADD_BYTES = 1692;
constexpr double PACK_KERNEL = 1524, PACK_BYTES = 960.4;  // to pack; bytes per clock
constexpr double TURN = 2.334;  // of one sum in C (rung 31), per element of a tile
// Of a value of k, where k % 4 is not 0; of SMALL where k is odd.
constexpr double UNALIGNED_SMALL = 1.13, UNALIGNED_DIRECT = 1.094, UNALIGNED_THIN = 1.841;
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
    {SMALL, 32, 32, 64, 2, 69632, 0.3774, 19.63, 4826},
    {SMALL, 64, 24, 64, 2, 73728, 20.19, 28.33, 5118},
    {SMALL, 24, 64, 64, 2, 73728, 9.762, 28.85, 6379},
    {SMALL, 32, 64, 64, 2, 78336, 21.96, 29.96, 8801},
    {DIRECT, 128, 256, 16, 1, 125520, 247.3, 237.3, 44080},
    {ASYNC, 32, 64, 32, 2, 73808, 0.6712, 28.31, 7552},
    {ASYNC, 64, 32, 32, 2, 66640, 0.4537, 27.63, 7032},
    {ASYNC, 48, 64, 32, 1, 106576, 34.14, 30.35, 8855},
    {ASYNC, 64, 48, 32, 1, 104528, 31.38, 28.11, 8777},
    {ASYNC, 64, 64, 32, 2, 69696, 0.6236, 45.24, 8515},
    {ASYNC, 32, 96, 32, 1, 110672, 29.52, 29.52, 12700},
    {ASYNC, 48, 96, 32, 1, 159824, 39.38, 39.38, 13710},
    {ASYNC, 96, 48, 32, 1, 153680, 42.47, 42.47, 11190},
    {ASYNC, 96, 64, 32, 1, 102464, 52.85, 52.91, 12520},
    {ASYNC, 64, 96, 32, 1, 104512, 47.12, 56.86, 10060},
    {ASYNC, 96, 96, 32, 1, 153664, 70.73, 70.73, 13170},
    {ASYNC, 80, 64, 32, 1, 172112, 46.51, 46.51, 11660},
    {ASYNC, 64, 80, 32, 1, 174160, 44.58, 44.58, 11100},
    {ASYNC, 160, 64, 32, 1, 168000, 81.64, 81.64, 15680},
    {ASYNC, 64, 160, 32, 1, 174144, 78.77, 78.77, 15000},
    {ASYNC, 48, 128, 32, 1, 106560, 53.58, 53.58, 12130},
    {ASYNC, 128, 48, 32, 1, 101440, 51.71, 51.71, 13190},
    {ASYNC, 128, 64, 32, 1, 135232, 67.64, 63.01, 14090},
    {ASYNC, 64, 128, 32, 1, 139328, 69.43, 67.02, 13410},
    {ASYNC, 128, 128, 16, 2, 67648, 2.363, 159.6, 13820},
    {ASYNC, 256, 64, 16, 1, 210048, 135.3, 135.3, 16390},
    {PACKED, 128, 128, 24, 2, 98368, 264.7, 70.5, 23450},
    {THIN, 1, 8, 1024, 8, 4096, 0.09, 0.09005, 5.546},
    {THIN, 4, 16, 512, 8, 8192, 0.09, 0.09004, 6704},
    {THIN, 16, 32, 256, 8, 16384, 11.41, 12.32, 18630},
    {BRIEF, 32, 32, 8, 12, 9216, 68.93, 17.27, 0.1569, 2},
    {BRIEF, 64, 32, 8, 10, 9984, 125.3, 28.57, 1.504, 2},
    {BRIEF, 32, 64, 8, 10, 13312, 45.1, 26.6, 6249, 2},
    {BRIEF, 96, 32, 8, 8, 17408, 3.206, 41.47, 5633, 2},
    {BRIEF, 32, 96, 8, 8, 17408, 4.06, 39.92, 6057, 2},
    {BRIEF, 64, 64, 8, 8, 17408, 67.35, 44.53, 8419, 2},
    {BRIEF, 64, 64, 8, 5, 17408, 96.34, 52.4, 2167},
    {BRIEF, 64, 64, 16, 5, 26112, 47.42, 48.92, 6860},
    {BRIEF, 128, 64, 16, 4, 38400, 139.2, 84, 8433},
    {BRIEF, 64, 128, 16, 4, 38400, 142.6, 82.97, 8776},
    {BRIEF, 128, 96, 8, 3, 29696, 56.93, 125, 15420},
    {BRIEF, 96, 128, 8, 3, 29696, 209.1, 115.1, 11910},
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
    return 4.0 * ((double(m) * k + double(n) * k) / DRAM + double(m) * n / WRITE) / device.dram;
  }
  double beside_traffic(const Kernel& x, double product) const {
    const double both = x.family == SMALL ? 0 : EXPOSED * std::min(product, traffic());
    return std::max(product, traffic()) + both;
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
           beside_traffic(x, product) + stores(x) + added(slices);
  }

  // Where some tiles, or all, are shared.
  double shared(const Kernel& x, int whole, int sharers) const {
    const int depth = padded(x, k), left = tiles(x) - whole;
    const double waves = whole / (device.sms * x.blocks), run = double(left) * depth / sharers;
    const int turns = sharers > left ? ceil_div(sharers, left) : 1;
    const double product = waves * (x.tile + depth * per_k(x, x.blocks) * slow(x)) +
                           run * per_k(x, ceil_div(sharers, device.sms)) * slow(x) +
                           ceil_div(left, sharers) * x.tile + turns * TURN * x.bm * x.bn;
    return LAUNCH + beside_traffic(x, product) + stores(x);
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
