// Each kernel's launch.
#pragma once

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

inline int multiprocessors() {
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
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
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
CUtensorMap map_of_c(const Element* C, int m, int n) {
  return tensor_map(C, n, m, S::ROWS, S::PIECE);
}

template <class S>
void launch(const Element* A, const Element* B, Element* C, int m, int n, int k) {
  const Work w = work<S>(m, n, k, HGEMM_BAND);
  const CUtensorMap a = map_of_a<S>(A, m, k), b = tensor_map(B, n, k, S::BN);
  const CUtensorMap c = w.by_tma ? map_of_c<S>(C, m, n) : a;
  start<S>(hgemm<S>, enough<S>(w), w, a, b, c, C);
}

using Turns = TurnsShape<192, 5, 2>;

inline void launch_in_turns(const Element* A, const Element* B, Element* C, int m, int n, int k) {
  const Work w = work<Turns>(m, n, k, 2 * HGEMM_BAND);
  start<Turns>(hgemm_in_turns<Turns>, enough<Turns>(w), w, map_of_a<Turns>(A, m, k),
               tensor_map(B, n, k, Turns::BN), map_of_c<Turns>(C, m, n));
}

template <class S>
Sharing sharing(const Work& w) {
  return share(w.tiles_m * w.tiles_n, w.steps, multiprocessors() / S::CLUSTER);
}

// shares: whether clusters share the last tiles, if these do not fill a wave.
template <class S>
void launch_shared(const Element* A, const Element* B, Element* C, int m, int n, int k,
                   bool shares) {
  const Work w = work<S>(m, n, k, S::HALVES > 1 ? WIDE_BAND : HGEMM_BAND);
  const Sharing shared = shares ? sharing<S>(w) : Sharing{0, 0};
  const int most = multiprocessors() / S::CLUSTER;
  constexpr int SUMS = SLOTS<S> * WARPGROUP * SUMS_LEFT<S>;
  start<S>(hgemm_shared<S>, shared.tiles ? most : enough<S>(w), w, map_of_a<S>(A, m, k),
           tensor_map(B, n, k, S::BN), map_of_c<S>(C, m, n),
           shared.tiles ? workspace<float4>(size_t(most) * SUMS) : nullptr, shared, k >= PACED);
}

// The same tile without a cluster. The blocks of a cluster wait for each other at both ends, which
// costs a product of one wave more than the shared loads bring, unless its lines lie across those
// of the L2, so that every block asks for more.
template <class S>
using Alone = Shape<S::BM, S::CONSUMERS, S::STAGES, 1, S::HALVES, S::OUT>;

template <class S>
bool without_clusters(int m, int n, int k) {
  return k % BK == 0 && waves<Alone<S>>(tiles(m, S::BM) * tiles(n, S::BN)) == 1;
}

template <class S>
void launch_alone_or_not(const Element* A, const Element* B, Element* C, int m, int n, int k) {
  if (without_clusters<S>(m, n, k)) return launch<Alone<S>>(A, B, C, m, n, k);
  launch<S>(A, B, C, m, n, k);
}
