// Rung 11: two blocks share a tile, by multicast.
//
// Changed:  clusters of two blocks, side by side along N. Both need the same tile of A: each
//           fetches half of it, for both. TMA puts a multicast tile at the same place of shared
//           memory in every block of the mask, and counts its bytes at the same barrier there. So a
//           stage may be filled again only when the consumers of *both* blocks have given it back:
//           they arrive at the barriers of both, which lie in each other's shared memory. They
//           arrive without .release.cluster, which would wait for all of a warp's writes
//           (MEMBAR.ALL.GPU) and costs a quarter of the speed: a product only reads the tile.
// Why:      a block reads 16 KiB of A and 16 KiB of B for a step, not 48 KiB: the L2, which all
//           multiprocessors share, has a third less to deliver.
// Ends:     a block must not end while the other one still arrives at its barriers, hence the
//           barrier of the cluster at the end. Blocks beyond the edge work on zeros.
// Tile:     256 x 128, BK = 64, 4 stages, 192 KiB, 384 threads, clusters of 2.
// Bound:    the end of a block, as before; then power: the clock falls below 1980 MHz.
//           pranjalssh/fast.cu measured 771 TFLOPS with clusters (8192, BF16, H200).
// Source:   pranjalssh/fast.cu, kernel 8; NVIDIA, CUDA C++ Programming Guide, "Thread Block
//           Clusters"; PTX ISA, cp.async.bulk.tensor, .multicast::cluster.
// Command:  grade --lab hgemm reference/hgemm/11_cluster
#include "gemm.cuh"
#include "hopper.cuh"
#include "plain.cuh"
#include "wgmma.cuh"

constexpr int BM = 256, BN = 128, BK = 64, STAGES = 4, CLUSTER = 2;
constexpr int WARPGROUP = 128, CONSUMERS = 2, THREADS = WARPGROUP * (1 + CONSUMERS);

struct alignas(1024) Shared {
  __half a[STAGES][BM * BK], b[STAGES][BN * BK];
  Barrier full[STAGES], empty[STAGES];
};

// One thread. A: m lines of k, in tiles of BM / CLUSTER; B: n lines of k.
__device__ void produce(Shared& s, const CUtensorMap* A, const CUtensorMap* B, int k) {
  const int slice = cluster_rank() * BM / CLUSTER;  // of the tile of A, fetched for all
  for (int p = 0, step = 0; p < k; p += BK, ++step) {
    const int stage = step % STAGES, round = step / STAGES;
    barrier_wait(&s.empty[stage], (round + 1) % 2);
    barrier_expect(&s.full[stage], sizeof s.a[0] + sizeof s.b[0]);
    tma_load(s.b[stage], B, p, blockIdx.y * BN, &s.full[stage]);
    tma_load_to_all(s.a[stage] + slice * BK, A, p, blockIdx.x * BM + slice, &s.full[stage],
                    (1 << CLUSTER) - 1);
  }
}

// To the producers of all blocks of the cluster.
__device__ void release(Shared& s, int stage) {
  const int lane = threadIdx.x % 32;
  if (lane < CLUSTER) barrier_arrive_at(&s.empty[stage], lane);
}

// A warpgroup: sums = the product of all tiles along K, for 64 rows.
__device__ void multiply(Shared& s, float (&sums)[BM / 2], int consumer, int k) {
  int before = 0;
  for (int p = 0, step = 0; p < k; p += BK, ++step) {
    const int stage = step % STAGES, round = step / STAGES;
    barrier_wait(&s.full[stage], round % 2);
    wgmma_fence();
#pragma unroll
    for (int q = 0; q < BK / 16; ++q)
      wgmma<BM>(sums, tile_descriptor(s.b[stage] + consumer * 64 * BK) + q * step_along_k,
                tile_descriptor(s.a[stage]) + q * step_along_k, p + q > 0);
    wgmma_commit();
    wgmma_wait<1>();
    if (p > 0) release(s, before);
    before = stage;
  }
  wgmma_wait<0>();
}

__global__ void __cluster_dims__(1, CLUSTER, 1) __launch_bounds__(THREADS)
    hgemm(const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B, __half* C,
          int m, int n, int k) {
  extern __shared__ Shared shared[];
  Shared& s = *shared;
  const int t = threadIdx.x;
  if (t == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      barrier_init(&s.full[stage], 1);
      barrier_init(&s.empty[stage], CLUSTER * CONSUMERS * WARPGROUP / 32);
    }
    barrier_init_done();
  }
  cluster_sync();  // the other block may use the barriers from now on
  if (t < WARPGROUP) {
    keep_registers<24>();
    if (t == 0) produce(s, &A, &B, k);
  } else {
    take_registers<240>();
    float sums[BM / 2];
    const int consumer = t / WARPGROUP - 1;
    multiply(s, sums, consumer, k);
    const int j0 = blockIdx.y * BN + consumer * 64 + t / 32 % 4 * 16 + t % 32 / 4;
#pragma unroll
    for (int e = 0; e < BM / 2; ++e) {
      const int j = j0 + e / 2 % 2 * 8, i = blockIdx.x * BM + e / 4 * 8 + t % 4 * 2 + e % 2;
      if (i < m && j < n) C[size_t(j) * m + i] = __float2half(sums[e]);
    }
  }
  cluster_sync();
}

template <>
void run_custom<__half>(thrust::device_vector<__half>& d_A, thrust::device_vector<__half>& d_B,
                        thrust::device_vector<__half>& d_C, const int m, const int n, const int k) {
  const __half *A = d_A.data().get(), *B = d_B.data().get();
  __half* C = d_C.data().get();
  if (k % 8) return launch_plain(A, B, C, m, n, k);
  const int lines = (n + BN - 1) / BN;
  const dim3 grid((m + BM - 1) / BM, (lines + CLUSTER - 1) / CLUSTER * CLUSTER);
  cudaFuncSetAttribute(hgemm, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
  hgemm<<<grid, THREADS, sizeof(Shared)>>>(tensor_map(A, m, k, BM / CLUSTER),
                                           tensor_map(B, n, k, BN), C, m, n, k);
}
