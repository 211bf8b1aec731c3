// Times run_custom of reduction.cu and CUB's DeviceReduce::Sum in turn, with the real CUDA runtime.
// Reads lines "N PAIRS" and answers each with a line: whether both sums are right, then for
// each pair the milliseconds of run_custom and of CUB. The first call of a size is not timed.
#include "reduction.cu"

#include <cstdio>
#include <cstdlib>

cudaError_t baseline(void* temporary, size_t& bytes, const float* in, float* out, int n);

namespace native {

constexpr unsigned long long HEAD_START_NS = 100000;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

__global__ void spin(unsigned long long nanoseconds) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - start < nanoseconds);
}

// Whole numbers of at most 2^8: every partial sum of fewer than 2^28 of them with random signs is
// exact in float.
__global__ void fill(float* to, int count, unsigned seed, unsigned long long* total) {
  long long mine = 0;
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x) {
    unsigned x = unsigned(i) * 2654435761u ^ seed;
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    x ^= x >> 16;
    const int value = (x & 1 ? 1 : -1) * int(64 + (x >> 25));
    mine += value;
    to[i] = float(value);
  }
  atomicAdd(total, static_cast<unsigned long long>(mine));
}

struct Sum {
  explicit Sum(int n) : n(n) {
    unsigned long long* total = nullptr;
    check(cudaMalloc((void**)&in, size_t(n) * 4), "cudaMalloc");
    check(cudaMalloc((void**)&out, 4), "cudaMalloc");
    check(cudaMalloc((void**)&total, 8), "cudaMalloc");
    check(cudaMemset(total, 0, 8), "cudaMemset");
    fill<<<1024, 256>>>(in, n, 7, total);
    check(cudaMemcpy(&want, total, 8, cudaMemcpyDeviceToHost), "the sum");
    check(baseline(nullptr, bytes, in, out, n), "CUB");
    check(cudaMalloc(&temporary, bytes), "cudaMalloc");
    cudaFree(total);
  }
  ~Sum() { cudaFree(in), cudaFree(out), cudaFree(temporary); }
  void call(bool theirs) {
    if (theirs) {
      check(baseline(temporary, bytes, in, out, n), "CUB");
      return;
    }
    const ::thrust::sgemm_grader::view view;
    ::thrust::device_vector<float> of_in(view, in, size_t(n)), of_out(view, out, 1);
    run_custom<float>(of_in, of_out, n);
  }
  bool right() {
    float got = 0;
    check(cudaMemcpy(&got, out, 4, cudaMemcpyDeviceToHost), "the sum");
    return double(got) == double(want);
  }

  int n;
  float *in = nullptr, *out = nullptr;
  void* temporary = nullptr;
  size_t bytes = 0;
  long long want = 0;
};

void answer(int n, int pairs, void* flush, size_t flush_bytes) {
  Sum sum(n);
  sum.call(false);
  bool right = sum.right();
  sum.call(true);
  right = right && sum.right();
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  float* times = new float[2 * size_t(pairs)];
  for (int i = 0; i < 2 * pairs; ++i) {
    const bool theirs = (i & 1) != (i / 2 & 1);  // A B, B A, A B, …
    check(cudaMemset(sum.out, 0xff, 4), "cudaMemset");
    cudaMemsetAsync(flush, i, flush_bytes);
    spin<<<1, 1>>>(HEAD_START_NS);
    cudaEventRecord(begin);
    sum.call(theirs);
    cudaEventRecord(end);
    check(cudaEventSynchronize(end), "a timed call");
    check(cudaEventElapsedTime(&times[i / 2 * 2 + theirs], begin, end), "cudaEventElapsedTime");
    right = right && sum.right();
  }
  std::printf("%d", int(right));
  for (int i = 0; i < 2 * pairs; ++i) std::printf(" %.6f", times[i]);
  std::printf("\n");
  std::fflush(stdout);
  delete[] times;
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
}

}  // namespace native

int main() {
  int l2 = 0;
  native::check(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, 0), "no GPU");
  const size_t flush_bytes = 2 * size_t(l2) + (1 << 20);
  void* flush = nullptr;
  native::check(cudaMalloc(&flush, flush_bytes), "cudaMalloc");
  int n = 0, pairs = 0;
  while (std::scanf("%d %d", &n, &pairs) == 2) native::answer(n, pairs, flush, flush_bytes);
}
