// Each kernel's launch.
#pragma once

#include <algorithm>
#include <utility>

#include "product.cuh"
#include "shares.cuh"
#include "turns.cuh"
#include "variants.cuh"
#include "workspace.cuh"

#ifndef HGEMM_BAND
#define HGEMM_BAND 8
#endif
constexpr int WIDE_BAND = 6;
// Clusters keep together along K where a band of A and B is more than the L2 has. A look takes
// longer than a small product can wait.
constexpr int PACED = 6144;

inline int tiles(int extent, int tile) { return (extent + tile - 1) / tile; }

inline int count_multiprocessors() {
  int count = 0;
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0);
  return count;
}

// A choice asks a few hundred times, and small products wait for the host.
inline int multiprocessors() {
  static const int all = count_multiprocessors();
  return all;
}

// So many run at once. A cluster lies in one of the parts of the GPU, whose multiprocessors are no
// multiple of 4: of 132, clusters of 4 and of 8 get 120.
inline int clusters_at_once(const Cluster& c) {
  const int all = multiprocessors(), blocks = c.blocks();
  return std::max(1, (blocks > 2 ? all - all / 11 : all) / blocks);
}

inline int waves(const Work& w) {
  return tiles(w.tiles_m * w.tiles_n, clusters_at_once(w.cluster));
}

// band: lines of clusters.
template <class S>
Work work(int m, int n, int k, const Cluster& c, int band = HGEMM_BAND, bool turned = false) {
  if (turned) std::swap(m, n);
  const int tiles_n = tiles(n, S::BN * c.n);
  // Bands of as many lines each.
  const int group = tiles(tiles_n, tiles(tiles_n, band));
  const int tiles_m = tiles(m, S::BM * c.m), all = tiles_m * tiles_n, most = multiprocessors();
  const int steps = tiles(k, BK);
  // In one wave that leaves no room, or is short.
  const bool one_wave = c.parts == 1 && all <= most / c.blocks();
  const bool brief = S::BM * S::BN <= 96 * 64 && steps <= 11;
  const bool early = one_wave && (brief || (c.blocks() == 1 && all > most - most / 11));
  const bool by_tma = (turned ? n : m) % 8 == 0;
  return {m, n, steps, tiles(steps, c.parts), turned, c, tiles_m, tiles_n, group, by_tma, early};
}

template <class S, class Kernel, class... Arguments>
void start(Kernel kernel, int clusters, const Work& w, const Arguments&... arguments) {
  cudaLaunchConfig_t config = {};
  const dim3 cluster(w.cluster.parts, w.cluster.n, w.cluster.m);
  config.gridDim = dim3(clusters * cluster.x, cluster.y, cluster.z);
  config.blockDim = dim3(S::THREADS);
  config.dynamicSmemBytes = sizeof(Storage<S>);
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {cluster.x, cluster.y, cluster.z};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  config.attrs = attributes;
  config.numAttrs = 2;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Storage<S>));
  cudaLaunchKernelEx(&config, kernel, arguments..., w);
}

// As few clusters as end in as many waves: what the others would need is power.
inline int enough(const Work& w) { return tiles(w.tiles_m * w.tiles_n, waves(w)); }

template <class S>
CUtensorMap map_of_a(const Element* A, const Work& w, int k) {
  return tensor_map(A, w.m, k, S::BM / w.cluster.n);
}

template <class S>
CUtensorMap map_of_b(const Element* B, const Work& w, int k) {
  return tensor_map(B, w.n, k, S::BN / w.cluster.m);
}

template <class S>
CUtensorMap map_of_c(const Element* C, const Work& w) {
  return w.turned ? tensor_map(C, w.m, w.n, S::PIECE, S::ROWS)
                  : tensor_map(C, w.n, w.m, S::ROWS, S::PIECE);
}

template <class S>
void launch(const Element* A, const Element* B, Element* C, int m, int n, int k,
            const Cluster& cluster, bool turned) {
  const int band = std::max(1, 2 * HGEMM_BAND / std::max(2, cluster.n));
  const Work w = work<S>(m, n, k, cluster, band, turned);
  if (turned) std::swap(A, B);
  const CUtensorMap a = map_of_a<S>(A, w, k), b = map_of_b<S>(B, w, k);
  const CUtensorMap c = w.by_tma ? map_of_c<S>(C, w) : a;
  if constexpr (S::TURNS) start<S>(hgemm_in_turns<S>, enough(w), w, a, b, c, C);
  else start<S>(hgemm<S>, enough(w), w, a, b, c, C);
}

inline Sharing sharing(const Work& w) {
  return share(w.tiles_m * w.tiles_n, w.steps, clusters_at_once(w.cluster));
}

// Clusters share the last tiles, if these do not fill a wave.
template <class S>
void launch_shared(const Element* A, const Element* B, Element* C, int m, int n, int k,
                   const Cluster& cluster, bool turned) {
  const Work w = work<S>(m, n, k, cluster, S::HALVES > 1 ? WIDE_BAND : HGEMM_BAND, turned);
  if (turned) std::swap(A, B);
  const Sharing shared = sharing(w);
  const int most = clusters_at_once(cluster), sums = slots<S>(cluster) * WARPGROUP * SUMS_LEFT<S>;
  start<S>(hgemm_shared<S>, shared.tiles ? most : enough(w), w, map_of_a<S>(A, w, k),
           map_of_b<S>(B, w, k), map_of_c<S>(C, w),
           shared.tiles ? workspace<float4>(size_t(most) * sums) : nullptr, shared, k >= PACED);
}
