#include <algorithm>

#include "gemm.cuh"
#include "plain.cuh"
#include "product.cuh"

template <class S>
void launch(const __half* A, const __half* B, __half* C, int m, int n, int k) {
  const auto tiles = [](int extent, int tile) { return (extent + tile - 1) / tile; };
  const Work w{m, n, k, tiles(m, S::BM), tiles(n, S::BN * S::CLUSTER), 8, m % 8 == 0};
  int sms = 0;
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
  const int clusters = std::min(sms / S::CLUSTER, w.tiles_m * w.tiles_n);

  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(clusters * S::CLUSTER);
  config.blockDim = dim3(S::THREADS);
  config.dynamicSmemBytes = sizeof(Storage<S>);
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {S::CLUSTER, 1, 1};
  config.attrs = &cluster;
  config.numAttrs = 1;
  cudaFuncSetAttribute(hgemm<S>, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Storage<S>));
  const CUtensorMap a = tensor_map(A, m, k, S::BM / S::CLUSTER), b = tensor_map(B, n, k, S::BN);
  const CUtensorMap c = w.by_tma ? tensor_map(C, n, m, 16) : a;
  cudaLaunchKernelEx(&config, hgemm<S>, a, b, c, C, w);
}

template <>
void run_custom<__half>(thrust::device_vector<__half>& d_A, thrust::device_vector<__half>& d_B,
                        thrust::device_vector<__half>& d_C, const int m, const int n, const int k) {
  const __half *A = d_A.data().get(), *B = d_B.data().get();
  __half* C = d_C.data().get();
  if (k % 8) return launch_plain(A, B, C, m, n, k);
  launch<Shape<256, 1, 2, 4, 2>>(A, B, C, m, n, k);
}
