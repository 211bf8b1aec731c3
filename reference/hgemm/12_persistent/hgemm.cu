// Rung 12: blocks that stay, tiles in an order that suits the L2, and C stored by TMA meanwhile.
//
// Changed:  as many blocks as multiprocessors, each taking one tile after another. The producer
//           runs on into the next tile while the consumers still store C. Sums go through shared
//           memory, 16 rows x 64 columns of every warp at a time, by stmatrix, which fills whole
//           16-byte pieces, swizzled so that no two lanes meet in a bank; TMA writes them to C and
//           reads the piece before while the next is put together. Tiles are taken in bands of
//           eight lines.
// Why:      between two tiles the tensor cores waited for the first loads of the next block, and
//           for stores of four bytes that fill a quarter of each 32-byte sector at a time. 66
//           clusters in a band of 8 x 8 tiles of 256 x 256 need 2048 lines of A and of B: they meet
//           in L2.
// Tile:     256 x 128, BK = 64, 4 stages, 225 KiB, 384 threads, clusters of 2.
// Bound:    power: in long runs at 8192 an H200 stays at 690 W and lowers its clock to between
//           1300 and 1600 MHz, for this kernel and for cuBLAS. pranjalssh/fast.cu measured 811
//           TFLOPS for its last step (8192, BF16, H200), cuBLAS 795.
// Source:   pranjalssh/fast.cu, kernels 9 to 12; CUTLASS, PersistentTileSchedulerSm90.
// Command:  grade --lab hgemm reference/hgemm/12_persistent
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
