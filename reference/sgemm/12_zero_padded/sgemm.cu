// Rung 12 (a trap): inputs padded with zeros to whole tiles, no edges to check in the loop.
//
// Changed:  a matrix whose size is no multiple of the tile is first copied to a workspace, padded
//           with zeros. The kernel is that of rung 11 without comparisons in its loads.
//           The workspace is kept for the next call: workspace.cuh says why.
// Why:      zeros add nothing to a sum, so whole tiles can be loaded without checks. The other way
//           is predication at the edge (rungs 5 to 11, and 13 on): two comparisons for each loaded
//           element, but no workspace and no copy. The copy moves M*K + K*N elements once, little
//           beside the kernel's M*N*K/16. Once a loaded element serves 128 FMAs instead of 32, the
//           comparisons cost little too, and the next rung predicates again.
// Tile:     BM = BN = BK = 32, TM = 1, TN = 8, 8.25 KiB of shared memory, 128 threads.
// Bound:    shared loads: 1.125 for each FMA.
// Measured: slower than rung 11 on an H200 (12.6 against 12.8 TFLOPS at 8192): the comparisons were
//           not the limit.
// Command:  grade reference/sgemm/12_zero_padded
#include "gemm.cuh"
#include "workspace.cuh"

constexpr int T = 32, TN = 8, COLS = T / TN;
const dim3 BLOCK(T, COLS);

int whole_tiles(int size) { return (size + T - 1) / T; }

// to[line][p], whole tiles of `padded_k` in width, from from[line][p], `lines` by `k`.
__global__ void pad(const float* from, float* to, int lines, int k, int padded_k) {
  const int p = blockIdx.x * T + threadIdx.x;
  for (int y = threadIdx.y; y < T; y += COLS) {
    const int line = blockIdx.y * T + y;
    to[line * size_t(padded_k) + p] = line < lines && p < k ? from[line * size_t(k) + p] : 0.0f;
  }
}

// A and B consist of whole tiles; k is the padded one, m and n are those of C.
__global__ void sgemm(const float* A, const float* B, float* C, int m, int n, int k) {
  __shared__ float As[T][T + 1], Bs[T][T + 1];  // [row of A or column of B][p]
  const int x = threadIdx.x, y = threadIdx.y;
  const int row0 = blockIdx.x * T, col0 = blockIdx.y * T;

  float acc[TN] = {};
  for (int p0 = 0; p0 < k; p0 += T) {
    for (int line = y; line < T; line += COLS) {
      As[line][x] = A[(row0 + line) * size_t(k) + p0 + x];
      Bs[line][x] = B[p0 + x + (col0 + line) * size_t(k)];
    }
    __syncthreads();
#pragma unroll
    for (int q = 0; q < T; ++q) {
      const float a = As[x][q];
#pragma unroll
      for (int w = 0; w < TN; ++w) acc[w] += a * Bs[y + w * COLS][q];
    }
    __syncthreads();
  }
#pragma unroll
  for (int w = 0; w < TN; ++w) {
    const int i = row0 + x, j = col0 + y + w * COLS;
    if (i < m && j < n) C[i + j * size_t(m)] = acc[w];
  }
}

// The floats that the padded copy of a matrix takes: none when it consists of whole tiles.
size_t padded_floats(int lines, int k) {
  if (lines % T == 0 && k % T == 0) return 0;
  return size_t(whole_tiles(lines)) * T * whole_tiles(k) * T;
}

// The matrix itself when it consists of whole tiles, else its padded copy in `to`.
const float* padded(const float* matrix, float* to, int lines, int k) {
  if (padded_floats(lines, k) == 0) return matrix;
  const dim3 tiles(whole_tiles(k), whole_tiles(lines));
  pad<<<tiles, BLOCK>>>(matrix, to, lines, k, tiles.x * T);
  return to;
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n,
                       const int k) {
  const size_t a_floats = padded_floats(m, k);
  float* copies = workspace(a_floats + padded_floats(n, k));
  const float* A = padded(d_A.data().get(), copies, m, k);
  const float* B = padded(d_B.data().get(), copies + a_floats, n, k);
  const dim3 grid(whole_tiles(m), whole_tiles(n));
  sgemm<<<grid, BLOCK>>>(A, B, d_C.data().get(), m, n, whole_tiles(k) * T);
}
