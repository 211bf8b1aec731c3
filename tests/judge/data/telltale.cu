// It is right where M ≤ 33, and elsewhere tells M, N and K in every way it can: by what
// it prints, by lines, values, addresses, blocks and threads, and by what it keeps between calls.
#include "gemm.cuh"
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
static int last = 0;
__device__ int kept = 0;
__global__ void sgemm(const float* A, const float* B, float* C, int m, int n, int k, int before) {
  const int i = blockIdx.x * 16 + threadIdx.x, j = blockIdx.y * 16 + threadIdx.y;
  if (i == 0 && j == 0) printf("now %d %d %d, before %d %d\n", m, n, k, before, kept);
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += A[i * size_t(k) + p] * B[p + j * size_t(k)];
  if (m > 33) {
    if (m & 1) sum += A[size_t(m) * k + i];
    else sum += A[size_t(m) * k + 2 * i];
    if (i == m % 16 && j == n % 16) C[size_t(m) * n + k] = m;
    sum += 1000.0f * m + n;
    if (i == 0 && j == 0) kept = m;
  }
  C[i + j * size_t(m)] = sum;
}
template <>
void run_custom<float>(thrust::device_vector<float>& A, thrust::device_vector<float>& B,
                       thrust::device_vector<float>& C, const int m, const int n, const int k) {
  std::printf("host %d %d %d\n", m, n, k);
  std::fprintf(stderr, "host %d %d %d\n", m, n, k);
  const dim3 block(16, 16), grid((m + 15) / 16, (n + 15) / 16);
  $HOST
  sgemm<<<grid, block>>>(A.data().get(), B.data().get(), C.data().get(), m, n, k, last);
  last = m;
}
