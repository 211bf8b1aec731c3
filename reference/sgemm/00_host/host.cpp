// Rung 0: the same product on one core of the CPU, so that the ladder has a floor.
//
// Changed:  nothing yet; not a submission and no CUDA. `plain` adds every product to C in memory;
//           `restrict` promises that C overlaps neither input and keeps the sum in a variable.
// Why:      without the promise every partial sum must be stored, as in rung 2, and the next loads
//           wait behind it. With it only the additions are left, each waiting for the one before:
//           the compiler may not change the order in which floats are added.
// Tile:     none. Both inputs are contiguous along K, which a CPU's cache likes.
// Bound:    the latency of an addition.
// Command:  g++ -O3 -o host reference/sgemm/00_host/host.cpp && ./host 1024
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

// A is m x k and row-major, B k x n and column-major, C m x n and column-major.
using Gemm = void(const float* A, const float* B, float* C, int m, int n, int k);

void plain(const float* A, const float* B, float* C, int m, int n, int k) {
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) {
      C[i + j * size_t(m)] = 0.0f;
      for (int p = 0; p < k; ++p)
        C[i + j * size_t(m)] += A[i * size_t(k) + p] * B[p + j * size_t(k)];
    }
}

void with_restrict(const float* __restrict__ A, const float* __restrict__ B,
                   float* __restrict__ C, int m, int n, int k) {
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) {
      float sum = 0.0f;
      for (int p = 0; p < k; ++p) sum += A[i * size_t(k) + p] * B[p + j * size_t(k)];
      C[i + j * size_t(m)] = sum;
    }
}

// The shortest of as many runs as a second holds, in seconds; one at least.
double seconds(Gemm* gemm, const float* A, const float* B, float* C, int size) {
  using Clock = std::chrono::steady_clock;
  double best = INFINITY, total = 0.0;
  while (total < 1.0) {
    const auto start = Clock::now();
    gemm(A, B, C, size, size, size);
    const double taken = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::min(best, taken);
    total += taken;
  }
  return best;
}

int main(int count, char** arguments) {
  const int size = count == 2 ? std::atoi(arguments[1]) : 0;
  if (size < 1 || size > 8192) {
    std::fprintf(stderr, "usage: host N    (1 to 8192: multiplies N x N by N x N)\n");
    return 2;
  }
  const size_t elements = size_t(size) * size;
  std::vector<float> A(elements), B(elements), C(elements), again(elements, NAN);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (float& a : A) a = normal(random);
  for (float& b : B) b = normal(random);

  const double flop = 2.0 * size * size * size;
  const double first = seconds(plain, A.data(), B.data(), C.data(), size);
  std::printf("plain     %8.3f GFLOPS  %9.6f s\n", flop / first * 1e-9, first);
  const double second = seconds(with_restrict, A.data(), B.data(), again.data(), size);
  std::printf("restrict  %8.3f GFLOPS  %9.6f s\n", flop / second * 1e-9, second);

  // Same additions in the same order; only a fused multiply-add may round otherwise.
  const double tolerance = 1e-5 * size;
  for (size_t e = 0; e < elements; ++e) {
    if (!(std::abs(C[e] - again[e]) <= tolerance)) {
      std::fprintf(stderr, "element %zu: %g and %g\n", e, C[e], again[e]);
      return 1;
    }
  }
  return 0;
}
