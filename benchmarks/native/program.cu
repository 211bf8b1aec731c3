// Calls run_custom as a program does, with the real CUDA runtime, and times it as the judge does.
// Reads lines "N REPETITIONS SECONDS" and answers each with the milliseconds of every repetition in
// one line. The first call of a size is not timed, and the second only shows whether a call waits.
#include "sgemm.cu"

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace native {

using Clock = std::chrono::steady_clock;

constexpr double HEAD_START_US = 100, PROBE_US = 20000;

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

__global__ void fill(float* to, size_t count, unsigned seed) {
  const size_t step = size_t(gridDim.x) * blockDim.x;
  for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    unsigned x = unsigned(i) * 2654435761u ^ seed;
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    x ^= x >> 16;
    to[i] = (x & 1 ? 1.0f : -1.0f) * (0.5f + float(x >> 8) * (1.0f / (1 << 24)));
  }
}

double seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

struct Product {
  explicit Product(int n) : n(n), count(size_t(n) * n) {
    for (float** each : {&a, &b, &c}) check(cudaMalloc((void**)each, 4 * count), "cudaMalloc");
    fill<<<512, 256>>>(a, count, 1);
    fill<<<512, 256>>>(b, count, 2);
  }
  ~Product() {
    for (float* each : {a, b, c}) cudaFree(each);
  }
  void call() {
    const ::thrust::sgemm_grader::view view;
    ::thrust::device_vector<float> va(view, a, count), vb(view, b, count), vc(view, c, count);
    run_custom<float>(va, vb, vc, n, n, n);
  }

  int n;
  size_t count;
  float *a, *b, *c;
};

// Whether run_custom returns only when the GPU has done what it was busy with before.
bool waits(Product& product) {
  check(cudaDeviceSynchronize(), "the first call");
  spin<<<1, 1>>>(static_cast<unsigned long long>(1000 * PROBE_US));
  const auto start = Clock::now();
  product.call();
  const bool waited = seconds(start) > 0.7e-6 * PROBE_US;
  check(cudaDeviceSynchronize(), "the second call");
  return waited;
}

void answer(int n, int repetitions, double most_seconds, void* flush, size_t flush_bytes) {
  Product product(n);
  product.call();
  const bool idle = waits(product);
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  const auto started = Clock::now();
  std::printf("%d", int(idle));
  for (int i = 0; i < repetitions && (i < 3 || seconds(started) < most_seconds); ++i) {
    fill<<<512, 256>>>(product.a, product.count, 2 * i);
    fill<<<512, 256>>>(product.b, product.count, 2 * i + 1);
    cudaDeviceSynchronize();
    if (!idle) spin<<<1, 1>>>(static_cast<unsigned long long>(1000 * HEAD_START_US));
    cudaMemsetAsync(flush, 0, flush_bytes);
    if (idle) cudaDeviceSynchronize();
    cudaEventRecord(begin);
    product.call();
    cudaEventRecord(end);
    check(cudaEventSynchronize(end), "a timed call");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    std::printf(" %.6f", milliseconds);
  }
  std::printf("\n");
  std::fflush(stdout);
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
  int n = 0, repetitions = 0;
  double most_seconds = 0;
  while (std::scanf("%d %d %lf", &n, &repetitions, &most_seconds) == 3)
    native::answer(n, repetitions, most_seconds, flush, flush_bytes);
}
