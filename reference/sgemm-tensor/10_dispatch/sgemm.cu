// Rung 10: small products stay on the FP32 units.
//
// Changed:  below 900 x 900 x 900 operations the product is that of reference/sgemm, rung 25: tiles
//           of 128 x 128, cp.async, slices of K (fp32.cuh). All others are rung 09.
// Why:      splitting, multiplying and adding are three launches, and a tile of 128 x 256 takes
//           its time however few blocks there are. At 512 an H100 reaches 0.59 of cuBLAS in rung
//           09, at 768 0.84, at 1024 1.18 (2026-11-26).
// Tile:     128 x 256 in parts, or 128 x 128 in FP32.
// Bound:    latency of launch and first tile for small products; a third of the FP16 peak for large
//           ones, in long runs the GPU's power.
// Command:  grade --lab sgemm-tensor reference/sgemm-tensor/10_dispatch
#include <cuda_fp16.h>

#include "gemm.cuh"
#include "fp32.cuh"
#include "product.cuh"
#include "workspace.cuh"

using FP16 = Split<__half, 2, 2, 128, 2>;
constexpr int SPLITTERS = 256;               // threads of a block that splits
constexpr double SMALL = 900.0 * 900 * 900;  // products of numbers: these stay in FP32
constexpr int TOP = 14;                      // exponent of a line's largest number after scaling

// The largest of the block's numbers, which are not negative.
__device__ float block_max(float most) {
  __shared__ float of_warps[SPLITTERS / 32];
  for (int apart = 16; apart > 0; apart /= 2)
    most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, apart));
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = most;
  __syncthreads();
  for (int warp = 0; warp < SPLITTERS / 32; ++warp) most = fmaxf(most, of_warps[warp]);
  return most;
}

// Four numbers of a line of k; what lies behind it is zero.
__device__ float4 load(const float* line, int p, int k) {
  if (k % 4 == 0) return *reinterpret_cast<const float4*>(line + p);
  return make_float4(line[p], p + 1 < k ? line[p + 1] : 0, p + 2 < k ? line[p + 2] : 0,
                     p + 3 < k ? line[p + 3] : 0);
}

// Both parts of four numbers.
__device__ void store_parts(__half* high, __half* low, const float4& x) {
  const __half2 first = __floats2half2_rn(x.x, x.y), second = __floats2half2_rn(x.z, x.w);
  const float2 of_first = __half22float2(first), of_second = __half22float2(second);
  *reinterpret_cast<__half2*>(high) = first;
  *reinterpret_cast<__half2*>(high + 2) = second;
  *reinterpret_cast<__half2*>(low) = __floats2half2_rn(x.x - of_first.x, x.y - of_first.y);
  *reinterpret_cast<__half2*>(low + 2) = __floats2half2_rn(x.z - of_second.x, x.w - of_second.y);
}

// A block splits one line of A, or after the last of A one of B, of k numbers to `length`.
// factors[line]: what the products of this line must be multiplied by.
__global__ void __launch_bounds__(SPLITTERS)
    split(const float* A, const float* B, __half* a, __half* b, float* factors, int m, int n, int k,
          int length) {
  const bool of_a = blockIdx.x < m;
  const int line = of_a ? blockIdx.x : blockIdx.x - m;
  const float* from = (of_a ? A : B) + size_t(line) * k;
  __half* const high = (of_a ? a : b) + size_t(line) * length;
  __half* const low = high + size_t(of_a ? m : n) * length;
  float most = 0;
  for (int p = threadIdx.x * 4; p < k; p += SPLITTERS * 4) {
    const float4 x = load(from, p, k);
    most = fmaxf(fmaxf(most, fmaxf(fabsf(x.x), fabsf(x.y))), fmaxf(fabsf(x.z), fabsf(x.w)));
  }
  most = block_max(most);
  // Of a line of zeros, or of numbers so small that 1 / scale would overflow, any scale serves.
  const int exponent = most > 0 ? max(ilogbf(most), TOP - 126) : TOP;
  const float scale = scalbnf(1.0f, TOP - exponent);
  for (int p = threadIdx.x * 4; p < length; p += SPLITTERS * 4) {
    const float4 x = p < k ? load(from, p, k) : make_float4(0, 0, 0, 0);
    const float4 scaled = make_float4(x.x * scale, x.y * scale, x.z * scale, x.w * scale);
    store_parts(high + p, low + p, scaled);
  }
  if (threadIdx.x == 0) factors[blockIdx.x] = 1 / scale;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  const float *A = d_A.data().get(), *B = d_B.data().get();
  float* const C = d_C.data().get();
  if (double(m) * n * k < SMALL) return fp32::launch(A, B, C, m, n, k);
  const int length = (k + 7) / 8 * 8;
  __half* const a = workspace<__half>(2 * (size_t(m) + n) * length);
  __half* const b = a + 2 * size_t(m) * length;
  float* const factors = workspace<float>(size_t(m) + n);
  split<<<m + n, SPLITTERS>>>(A, B, a, b, factors, m, n, k, length);
  launch_product<FP16>(a, b, factors, factors + m, C, m, n, length);
}
