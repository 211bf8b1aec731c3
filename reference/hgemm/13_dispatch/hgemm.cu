// Rung 13: for every shape the tile that should be fastest, and no shape that TMA cannot take.
//
// Changed:  four shapes of the same kernel, 256 x 128, 192 x 128, 128 x 128 and 128 x 64, one whose
//           consumers take turns, each with a tile of its own, and one of 192 x 256. A model of two
//           figures for each, the clocks of a step along K and of all that a tile takes besides,
//           says which is to end first: waves times the time of a tile. Every second tile goes back
//           along K. Large tiles that would fill at most half of a last wave are shared by two
//           clusters each, and producers of large tiles keep together. A product of one wave does
//           without clusters; it begins while the launch before it ends, and waits before it reads.
//           A consumer puts its whole tile of C together before one thread stores it. Where K is no
//           multiple of 8, A and B are first copied with longer lines; where M is none, C is
//           stored plainly.
// Why:      1024 x 1024 is 32 tiles of 256 x 128, for 132 multiprocessors; with 128 x 64 it is 128.
//           3072 x 3072 is 288 tiles of 256 x 128, two waves and a fifth; with 192 x 128 it is 384,
//           nearly three. Large products are limited by power, and what moves is power: at 8192 an
//           H200 has 686 TFLOPS, 746 if all loads find their lines in the L2, and 836 without
//           loads. So tiles are large, and begin where the lines are that were read last. At 16384
//           clusters that drift apart read 14 GB from memory, those that keep together 7 GB. The
//           tensor cores stood still for 2200 clocks while pieces of C took turns in shared memory,
//           and for 1200 now, which is 7 % of a tile's time where K is 1024. In turns they do not,
//           but a tile of B serves one consumer. TMA wants lines that begin at multiples of 16
//           bytes. To copy both matrices takes their size twice in traffic, a fifth of the
//           product's time at 4097, and wgmma does the rest.
// Tuning:   -DHGEMM_VARIANT=N takes one shape of the table in variants.cuh for all, -DHGEMM_BAND=N
//           sets the lines of a band, -DHGEMM_BF16 the type. benchmarks.beside_cublas times them.
// Tile:     192 x 256, 3 stages; 256 x 128, 3 stages, and 192 x 128, 4 stages; 128 x 128, 6 stages,
//           no cluster; 128 x 64, one consumer, 8 stages; 192 x 128 in turns, 5 stages; clusters
//           of 2 or none; BK = 64.
// Bound:    power where the product is large; below 2048 the time until the first tiles arrive.
// Source:   CUTLASS, sm90 tile heuristics, "pingpong" and stream-K kernels; the model is rung 32's
//           of reference/sgemm.
// Command:  grade --lab hgemm reference/hgemm/13_dispatch
#include <algorithm>
#include <cmath>
#include <iterator>

#include "gemm.cuh"
#include "pad.cuh"
#include "product.cuh"
#include "turns.cuh"
#include "variants.cuh"
#include "wide.cuh"
#include "workspace.cuh"

#ifndef HGEMM_BAND
#define HGEMM_BAND 8
#endif

int tiles(int extent, int tile) { return (extent + tile - 1) / tile; }

int multiprocessors() {
  int count = 0;
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0);
  return count;
}

template <class S>
int waves(int cluster_tiles) {
  return tiles(cluster_tiles, multiprocessors() / S::CLUSTER);
}

template <class S>
Work work(int m, int n, int k, int band) {
  const int tiles_n = tiles(n, S::BN * S::CLUSTER);
  // Bands of as many lines each.
  const int group = tiles(tiles_n, tiles(tiles_n, band));
  return {m, n, tiles(k, BK), tiles(m, S::BM), tiles_n, group, m % 8 == 0};
}

template <class S, class Kernel, class... Arguments>
void start(Kernel kernel, int clusters, const Work& w, const Arguments&... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(clusters * S::CLUSTER);
  config.blockDim = dim3(S::THREADS);
  config.dynamicSmemBytes = sizeof(Storage<S>);
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {S::CLUSTER, 1, 1};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  // With more waves there is little to gain.
  attributes[1].val.programmaticStreamSerializationAllowed = clusters == w.tiles_m * w.tiles_n;
  config.attrs = attributes;
  config.numAttrs = 2;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Storage<S>));
  cudaLaunchKernelEx(&config, kernel, arguments..., w);
}

// As few clusters as end in as many waves: what the others would need is power.
template <class S>
int enough(const Work& w) {
  const int all = w.tiles_m * w.tiles_n;
  return tiles(all, waves<S>(all));
}

template <class S>
CUtensorMap map_of_a(const Element* A, int m, int k) {
  return tensor_map(A, m, k, S::BM / S::CLUSTER);
}

template <class S>
void launch(const Element* A, const Element* B, Element* C, int m, int n, int k) {
  const Work w = work<S>(m, n, k, HGEMM_BAND);
  const CUtensorMap a = map_of_a<S>(A, m, k), b = tensor_map(B, n, k, S::BN);
  const CUtensorMap c = w.by_tma ? tensor_map(C, n, m, S::ROWS) : a;
  start<S>(hgemm<S>, enough<S>(w), w, a, b, c, C);
}

using Turns = TurnsShape<192, 5, 2>;

void launch_in_turns(const Element* A, const Element* B, Element* C, int m, int n, int k) {
  const Work w = work<Turns>(m, n, k, 2 * HGEMM_BAND);
  start<Turns>(hgemm_in_turns<Turns>, enough<Turns>(w), w, map_of_a<Turns>(A, m, k),
               tensor_map(B, n, k, Turns::BN), tensor_map(C, n, m, Turns::ROWS));
}

constexpr int WIDE_BAND = 6;

void launch_wide(const Element* A, const Element* B, Element* C, int m, int n, int k) {
  const Work w = work<Wide>(m, n, k, WIDE_BAND);
  const int all = w.tiles_m * w.tiles_n, most = multiprocessors() / Wide::CLUSTER;
  const int shared = shared_tiles(all, most);
  constexpr int SUMS = Wide::CLUSTER * Wide::CONSUMERS * WARPGROUP * SUMS_LEFT<Wide>;
  start<Wide>(hgemm_wide<Wide>, shared ? most : enough<Wide>(w), w, map_of_a<Wide>(A, m, k),
              tensor_map(B, n, k, Wide::BN), tensor_map(C, n, m, Wide::ROWS),
              shared ? workspace<float4>(size_t(shared) * SUMS) : nullptr, shared);
}

// Clocks of a step of 64 along K, a little more than the tensor cores need, and of a tile besides.
// From the times of these shapes on an H200.
template <class S>
constexpr int STEP_CLOCKS = S::BM * S::BN == 256 * 128   ? 1050
                            : S::BM * S::BN == 192 * 128 ? 840
                            : S::BM * S::BN == 128 * 128 ? 620
                                                         : 330;
constexpr int TILE_CLOCKS = 3000;

template <int VARIANT>
using Variant = std::tuple_element_t<VARIANT, Variants>;

// The same tile without a cluster. The blocks of a cluster wait for each other at both ends, which
// costs a product of one wave more than the shared loads bring, unless its lines lie across those
// of the L2, so that every block asks for more.
template <class S>
using Alone = Shape<S::BM, S::CONSUMERS, S::STAGES, 1>;

template <class S>
void launch_alone_or_not(const Element* A, const Element* B, Element* C, int m, int n, int k) {
  const bool one_wave = waves<Alone<S>>(tiles(m, S::BM) * tiles(n, S::BN)) == 1;
  if (one_wave && k % BK == 0) return launch<Alone<S>>(A, B, C, m, n, k);
  launch<S>(A, B, C, m, n, k);
}

template <class S>
double clocks(int m, int n, int k) {
  const Work w = work<S>(m, n, k, 1);
  return waves<S>(w.tiles_m * w.tiles_n) * (double(w.steps) * STEP_CLOCKS<S> + TILE_CLOCKS);
}

// In turns only the end of the last tile counts. Clocks as above, from 8192 x 8192 x 1024 and
// 16384 x 2048 x 2048.
constexpr int TURNS_STEP_CLOCKS = 900, TURNS_TILE_CLOCKS = 150, TURNS_END_CLOCKS = 3000;

double clocks_in_turns(int m, int n, int k) {
  if (m % 8) return HUGE_VAL;  // C cannot be stored by TMA
  const Work w = work<Turns>(m, n, k, 1);
  const double tile = double(w.steps) * TURNS_STEP_CLOCKS + TURNS_TILE_CLOCKS;
  return waves<Turns>(w.tiles_m * w.tiles_n) * tile + TURNS_END_CLOCKS;
}

// Tiles that are shared count half, but for what it takes to leave and to add sums. A large tile
// moves less, and what it spares of the power makes the clocks shorter.
constexpr int WIDE_STEP_CLOCKS = 1565, WIDE_TILE_CLOCKS = 6000, WIDE_SHARED_CLOCKS = 6000;
constexpr double WIDE_CLOCK = 0.97;

double clocks_wide(int m, int n, int k) {
  if (m % 8 || k <= BK) return HUGE_VAL;  // two clusters that share a tile have a step each
  const Work w = work<Wide>(m, n, k, 1);
  const int all = w.tiles_m * w.tiles_n, most = multiprocessors() / Wide::CLUSTER;
  const double tile = double(w.steps) * WIDE_STEP_CLOCKS + WIDE_TILE_CLOCKS;
  if (shared_tiles(all, most) == 0) return WIDE_CLOCK * waves<Wide>(all) * tile;
  return WIDE_CLOCK * ((all / most + 0.5) * tile + WIDE_SHARED_CLOCKS);
}

void multiply_matrices(const Element* A, const Element* B, Element* C, int m, int n, int k) {
#ifdef HGEMM_VARIANT
  launch<Variant<HGEMM_VARIANT>>(A, B, C, m, n, k);
#else
  const double each[] = {clocks<Variant<0>>(m, n, k), clocks<Variant<1>>(m, n, k),
                         clocks<Variant<2>>(m, n, k), clocks<Variant<3>>(m, n, k),
                         clocks_in_turns(m, n, k),    clocks_wide(m, n, k)};
  switch (std::min_element(std::begin(each), std::end(each)) - each) {
    case 0: return launch_alone_or_not<Variant<0>>(A, B, C, m, n, k);
    case 1: return launch_alone_or_not<Variant<1>>(A, B, C, m, n, k);
    case 2: return launch_alone_or_not<Variant<2>>(A, B, C, m, n, k);
    case 3: return launch_alone_or_not<Variant<3>>(A, B, C, m, n, k);
    case 4: return launch_in_turns(A, B, C, m, n, k);
    default: return launch_wide(A, B, C, m, n, k);
  }
#endif
}

template <>
void run_custom<Element>(thrust::device_vector<Element>& d_A, thrust::device_vector<Element>& d_B,
                         thrust::device_vector<Element>& d_C, const int m, const int n,
                         const int k) {
  const Element *A = d_A.data().get(), *B = d_B.data().get();
  Element* C = d_C.data().get();
  const int padded = tiles(k, LINE_UNIT) * LINE_UNIT;
  if (padded != k) {
    Element* const copies = workspace<Element>((size_t(m) + n) * padded);
    A = padded_lines(A, copies, m, k, padded);
    B = padded_lines(B, copies + size_t(m) * padded, n, k, padded);
  }
  multiply_matrices(A, B, C, m, n, padded);
}
