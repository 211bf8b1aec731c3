// Rung 32: of 42 kernels the one that should take the fewest clocks.
//
// Changed:  every kernel has an estimate of its time, from a few measured constants: clocks of a
//           value of k for a tile, alone on its multiprocessor and beside others, of a tile
//           besides, of launch, packing and sums (estimate.cuh). The host takes the least. The
//           kernels: small tiles, which read operands as they lie (cp.async, LDS.128 along K) and
//           may be sliced along K, oblong ones either way round; twelve light ones, sliced too,
//           with K blocks of eight or sixteen values, of which a multiprocessor holds three to
//           twelve (brief.cuh); 21 tiles of which cp.async brings every value to its transposed
//           place (async_tile.cuh), sliced, or shared in turns as in rung 31; rung 31's largest
//           tile and rung 30's; for up to 16 lines of A or B one warp for one to four lines of the
//           other. Where m % 4 is not 0, rung 30's sums reach C by way of shared memory. A kernel
//           that uses what the one before it has written begins while that one ends (overlap.cuh).
// Why:      packing pays where it is a small part: from about 1000 on, for squares. 256 x 256 x
//           16384 is four tiles of 128 x 128; 32 slices of K fill 128 multiprocessors. 24 x 8000 is
//           125 tiles of 24 x 64, of which a tile of 128 lines would waste four fifths. 142 lines
//           are three tiles of 48; two of 128 would be nearly half empty. Slices also fill a last
//           wave: 210 tiles on 132 multiprocessors take two, in five slices eight fifths. cp.async
//           of four bytes needs no alignment and no registers: two or three K blocks are on their
//           way, the L2 fetches the next ones of a line too (narrow_copy.cuh), and lines at any k
//           come as fast as aligned ones. Its five wavefronts for 32 values leave room beside loads
//           of fragments that take two each. Light blocks waste nothing of a short K, and multiply
//           while others begin and end.
// Tile:     from 24 x 64 to 128 x 256.
// Bound:    latency of launch and first tile for small products, the memory for thin ones, else
//           instruction issue.
// Command:  grade reference/sgemm/32_dispatch
#include "gemm.cuh"
#include "async_product.cuh"
#include "brief.cuh"
#include "estimate.cuh"
#include "packed.cuh"
#include "small.cuh"
#include "thin.cuh"
#include "turns.cuh"

void launch_direct(const float* A, const float* B, float* C, int m, int n, int k,
                   const Choice& choice) {
  using S = direct::Shape<16, 8, 2, 4, 1, 16, 8, 5>;
  direct::Work w = direct::work<S>(m, n, k);
  w.whole = choice.whole, w.sharers = choice.sharers;
  cudaFuncSetAttribute(direct::sgemm<S>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::SHARED);
  direct::sgemm<S><<<w.whole + w.sharers, S::THREADS, S::SHARED>>>(A, B, C, w);
}

template <int... NUMBERS>
void launch_async(const float* A, const float* B, float* C, int m, int n, int k, const Choice& c) {
  async::launch<async::Shape<NUMBERS...>>(A, B, C, m, n, k, c.slices, c.whole, c.sharers);
}

void launch(const Choice& c, const float* A, const float* B, float* C, int m, int n, int k,
            const Device& device) {
  switch (c.kernel) {
    case SMALL_32x32: return launch_small<32, 32, 64, 4, 4, 4, 4, 2>(A, B, C, m, n, k, c.slices);
    case SMALL_64x24: return launch_small<64, 24, 64, 8, 6, 8, 3, 2>(A, B, C, m, n, k, c.slices);
    case SMALL_24x64:
      return launch_small<64, 24, 64, 8, 6, 8, 3, 2>(B, A, C, n, m, k, c.slices, true);
    case SMALL_32x64:
      return launch_small<64, 32, 64, 8, 8, 8, 3, 2>(B, A, C, n, m, k, c.slices, true);
    case DIRECT_128x256: return launch_direct(A, B, C, m, n, k, c);
    case ASYNC_32x64: return launch_async<8, 8, 1, 1, 8, 32, 5, 16>(A, B, C, m, n, k, c);
    case ASYNC_64x32: return launch_async<8, 4, 2, 1, 4, 32, 5, 16>(A, B, C, m, n, k, c);
    case ASYNC_48x64: return launch_async<12, 8, 1, 1, 8, 32, 5, 16>(A, B, C, m, n, k, c);
    case ASYNC_64x48: return launch_async<8, 12, 1, 1, 8, 32, 5, 16, 8>(A, B, C, m, n, k, c);
    case ASYNC_64x64: return launch_async<8, 8, 2, 1, 4, 32, 4, 16>(A, B, C, m, n, k, c);
    case ASYNC_32x96: return launch_async<8, 12, 1, 1, 8, 32, 5, 16>(A, B, C, m, n, k, c);
    case ASYNC_48x96: return launch_async<12, 12, 1, 1, 8, 32, 5, 16>(A, B, C, m, n, k, c);
    case ASYNC_96x48: return launch_async<12, 12, 1, 1, 8, 32, 5, 16, 8>(A, B, C, m, n, k, c);
    case ASYNC_96x64: return launch_async<12, 8, 2, 1, 4, 32, 4>(A, B, C, m, n, k, c);
    case ASYNC_64x96: return launch_async<8, 12, 2, 1, 4, 32, 4>(A, B, C, m, n, k, c);
    case ASYNC_96x96: return launch_async<12, 12, 2, 1, 4, 32, 4>(A, B, C, m, n, k, c);
    case ASYNC_80x64: return launch_async<20, 8, 1, 1, 8, 32, 5, 16>(A, B, C, m, n, k, c);
    case ASYNC_64x80: return launch_async<8, 20, 1, 1, 8, 32, 5, 16, 8>(A, B, C, m, n, k, c);
    case ASYNC_160x64: return launch_async<20, 8, 2, 1, 4, 32, 4>(A, B, C, m, n, k, c);
    case ASYNC_64x160: return launch_async<8, 20, 2, 1, 4, 32, 4>(A, B, C, m, n, k, c);
    case ASYNC_48x128: return launch_async<12, 8, 1, 2, 4, 32, 4, 16>(A, B, C, m, n, k, c);
    case ASYNC_128x48: return launch_async<8, 12, 2, 1, 4, 32, 4, 16, 8>(A, B, C, m, n, k, c);
    case ASYNC_128x64: return launch_async<16, 8, 2, 1, 4, 32, 4>(A, B, C, m, n, k, c);
    case ASYNC_64x128: return launch_async<16, 8, 1, 2, 4, 32, 4>(A, B, C, m, n, k, c);
    case ASYNC_128x128: return launch_async<8, 8, 4, 2, 1, 16, 4>(A, B, C, m, n, k, c);
    case ASYNC_256x64: return launch_async<16, 8, 4, 1, 2, 16, 8>(A, B, C, m, n, k, c);
    case PACKED_128x128: return launch_large<Shape<128, 24, 12, 4>>(A, B, C, m, n, k, device.sms);
    case THIN_1: return launch_thin<1>(A, B, C, m, n, k);
    case THIN_4: return launch_thin<4>(A, B, C, m, n, k);
    case THIN_16: return launch_thin<16>(A, B, C, m, n, k);
    case BRIEF_32x32: return launch_brief<4, 4, 1, 2, 8, 4, 12>(A, B, C, m, n, k, c.slices);
    case BRIEF_64x32: return launch_brief<4, 8, 2, 1, 8, 3, 10>(A, B, C, m, n, k, c.slices);
    case BRIEF_32x64: return launch_brief<4, 8, 1, 2, 8, 4, 10>(A, B, C, m, n, k, c.slices);
    case BRIEF_96x32: return launch_brief<12, 4, 1, 2, 8, 4, 8>(A, B, C, m, n, k, c.slices);
    case BRIEF_32x96: return launch_brief<4, 12, 1, 2, 8, 4, 8>(A, B, C, m, n, k, c.slices);
    case BRIEF_64x64: return launch_brief<8, 8, 1, 2, 8, 4, 8>(A, B, C, m, n, k, c.slices);
    case BRIEF_64x64_LIGHT: return launch_brief<8, 4, 1, 4, 8, 4, 5>(A, B, C, m, n, k, c.slices);
    case BRIEF_64x64_DEEP: return launch_brief<8, 4, 1, 4, 16, 3, 5>(A, B, C, m, n, k, c.slices);
    case BRIEF_128x64: return launch_brief<8, 8, 2, 2, 16, 3, 4>(A, B, C, m, n, k, c.slices);
    case BRIEF_64x128: return launch_brief<8, 8, 1, 4, 16, 3, 4>(A, B, C, m, n, k, c.slices);
    case BRIEF_128x96: return launch_brief<8, 12, 2, 2, 8, 4, 3>(A, B, C, m, n, k, c.slices);
    default: return launch_brief<12, 8, 1, 4, 8, 4, 3>(A, B, C, m, n, k, c.slices);
  }
}

// Asked for once: the driver takes milliseconds to tell its clocks.
const Device& this_device() {
  static const Device device = {
      attribute(cudaDevAttrMultiProcessorCount), attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin),
      attribute(cudaDevAttrComputeCapabilityMajor) >= 9,
      // Two transfers in a clock of the memory; bytes in a clock of the multiprocessors.
      2.0 * attribute(cudaDevAttrMemoryClockRate) * attribute(cudaDevAttrGlobalMemoryBusWidth) / 8 /
          attribute(cudaDevAttrClockRate)};
  return device;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  const Device& device = this_device();
  launch(Estimate{m, n, k, device}.best(), d_A.data().get(), d_B.data().get(), d_C.data().get(), m,
         n, k, device);
}
