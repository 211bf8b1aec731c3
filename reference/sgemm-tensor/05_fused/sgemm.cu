// Rung 05: the split inside the product: of B in registers, of A by warps that do nothing else.
//
// Changed:  no kernel splits ahead, and memory holds no parts. TMA brings FP32 tiles. A's tile is
//           split in shared memory by three warps of the producer's warpgroup, in place and beside
//           it; a barrier more in every stage says that it is done. B's numbers go to registers,
//           where each consumer splits its own fragments: wgmma takes its first operand from there.
// Why:      the workspace of rung 04 is twice A and B, written and read again. And tiles of FP32
//           are half as large as their parts, so a stage has 64 KiB, and there are three.
// Shared:   a step reads 16 KiB of A and writes 32; consumers read 32 KiB of B, and wgmma A's
// parts,
//           64 bytes a clock: 70 % of what shared memory can do in that time. If B were split there
//           too, it would be the bound.
// Tile:     128 x 256, BK = 32, 3 stages of 64 KiB.
// Bound:    a third of the TF32 peak.
// Command:  grade --lab sgemm-tensor reference/sgemm-tensor/05_fused
#include "gemm.cuh"
#include "product.cuh"
#include "workspace.cuh"

// A block copies one line of A, or after the last of A one of B, and makes it longer by zeros.
__global__ void pad(const float* A, const float* B, float* to, int m, int k, int length) {
  const int line = blockIdx.x;
  const float* from = line < m ? A + size_t(line) * k : B + size_t(line - m) * k;
  for (int p = threadIdx.x; p < length; p += blockDim.x)
    to[size_t(line) * length + p] = p < k ? from[p] : 0.0f;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  const float *A = d_A.data().get(), *B = d_B.data().get();
  const int length = (k + 3) / 4 * 4;
  if (length > k) {  // TMA needs lines of 16 bytes
    float* const padded = workspace<float>((size_t(m) + n) * length);
    pad<<<m + n, 256>>>(A, B, padded, m, k, length);
    A = padded;
    B = padded + size_t(m) * length;
  }
  launch_product(A, B, d_C.data().get(), m, n, length);
}
