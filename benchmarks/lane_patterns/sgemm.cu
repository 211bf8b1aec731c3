// No product: loads of shared memory by some lanes of a warp only, and copies by cp.async from more or
// fewer lines, each to be counted by the simulator and by Nsight Compute (benchmarks/counters_h200.py).
#include "gemm.cuh"

// The lanes of MASK each move 16 bytes, lane l element l >> SHIFT. In asm, for else the compiler has
// all lanes load where that does no harm.
template <unsigned MASK, int SHIFT>
__global__ void some(const float* A, float* C) {
  __shared__ float4 tile[32];
  const int lane = threadIdx.x;
  for (int i = lane; i < 128; i += 32) reinterpret_cast<float*>(tile)[i] = A[i];
  __syncthreads();
  float4 value = make_float4(0.f, 0.f, 0.f, 0.f);
  const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(tile + (lane >> SHIFT)));
  if (MASK >> lane & 1)
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
                 : "r"(from));
  reinterpret_cast<float4*>(C)[lane] = value;
}

// Every lane copies BYTES; LANES neighbours read from one line of 128 bytes, the next from another. L1:
// through the L1, which only copies of 16 bytes may pass by.
template <int BYTES, int LANES, bool L1>
__global__ void copy(const float* A, float* C) {
  __shared__ __align__(16) float tile[128];
  const int lane = threadIdx.x, own = BYTES / 4;
  const float* from = A + lane / LANES * 32 + lane % LANES * own;
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tile + lane * own));
  if constexpr (L1)
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(BYTES));
  else
    asm volatile("cp.async.cg.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(BYTES));
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  C[lane] = tile[lane];
}

template <unsigned MASK, int SHIFT = 0>
void go_some(const float* A, float* C) {
  some<MASK, SHIFT><<<1, 32>>>(A, C);
}

template <int BYTES, int LANES, bool L1>
void go_copy(const float* A, float* C) {
  copy<BYTES, LANES, L1><<<1, 32>>>(A, C);
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  const float* A = d_A.data().get();
  float* C = d_C.data().get();
  go_some<0x00000001>(A, C);
  go_some<0x000000ff>(A, C);
  go_some<0x0000ffff>(A, C);
  go_some<0x00ff00ff>(A, C);
  go_some<0x0f0f0f0f>(A, C);
  go_some<0x33333333>(A, C);
  go_some<0x55555555>(A, C);
  go_some<0xaaaaaaaa>(A, C);
  go_some<0x11111111>(A, C);
  go_some<0x7fffffff>(A, C);
  go_some<0xfffffffe, 1>(A, C);
  go_some<0x0000ffff, 1>(A, C);
  go_some<0x0000ffff, 5>(A, C);
  go_some<0xffff7fff, 5>(A, C);
  go_copy<4, 1, true>(A, C);
  go_copy<4, 4, true>(A, C);
  go_copy<4, 8, true>(A, C);
  go_copy<4, 32, true>(A, C);
  go_copy<8, 1, true>(A, C);
  go_copy<8, 4, true>(A, C);
  go_copy<8, 16, true>(A, C);
  go_copy<16, 1, true>(A, C);
  go_copy<16, 2, true>(A, C);
  go_copy<16, 8, true>(A, C);
  go_copy<16, 1, false>(A, C);
  go_copy<16, 2, false>(A, C);
  go_copy<16, 4, false>(A, C);
  go_copy<16, 8, false>(A, C);
}
