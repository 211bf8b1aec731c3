// Times run_custom and cuBLAS by turns: cold L2, plain launches, host calls charged.
// ARGUMENTS: libcublas.so libcublasLt.so. Reads lines "M N K REPETITIONS" and answers each with a line
//   "M N K error/tolerance" and, for every candidate, " NAME MICROSECONDS" (a median).
// With -DDIVISIONS rung 32's kernels are candidates too, in every division that its estimate offers:
//   KERNEL/SLICES/WHOLE/SHARERS.
#include "sgemm.cu"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace shapes {

constexpr double HEAD_START_US = 60;  // in which the host is ahead of the GPU
constexpr int CANDIDATES = 16;
constexpr size_t WORKSPACE = 256 << 20;

void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}
void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: ", what);
  fail(cudaGetErrorString(error));
}

__global__ void spin(unsigned long long nanoseconds) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - start < nanoseconds);
}

// Pseudo-random values between 0.5 and 1.5, of either sign.
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

// The largest difference; a NaN counts as the largest of all.
__global__ void compare(const float* x, const float* y, size_t count, unsigned* worst) {
  const size_t step = size_t(gridDim.x) * blockDim.x;
  unsigned most = 0;
  for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
    most = max(most, __float_as_uint(fabsf(x[i] - y[i])));
  atomicMax(worst, most);
}

struct Heuristic {  // cublasLtMatmulHeuristicResult_t
  unsigned long long algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

template <class Function>
Function symbol(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == nullptr) fail(name);
  return reinterpret_cast<Function>(found);
}

struct Cublas {
  void *handle, *lt_handle, *description, *workspace;
  int (*sgemm)(void*, int, int, int, int, int, const float*, const float*, int, const float*, int,
               const float*, float*, int);
  int (*layout)(void**, int, unsigned long long, unsigned long long, long long);
  int (*preference)(void**);
  int (*set_preference)(void*, int, const void*, size_t);
  int (*heuristic)(void*, void*, void*, void*, void*, void*, void*, int, Heuristic*, int*);
  int (*matmul)(void*, void*, const float*, const float*, void*, const float*, void*, const float*,
                const float*, void*, float*, void*, const void*, void*, size_t, cudaStream_t);

  Cublas(const char* blas_path, const char* lt_path) {
    void *blas = dlopen(blas_path, RTLD_NOW), *lt = dlopen(lt_path, RTLD_NOW);
    if (blas == nullptr || lt == nullptr) fail(dlerror());
    constexpr int PEDANTIC = 2, COMPUTE_32F = 68, REAL_32F = 0, DESC_TRANSA = 3, OP_T = 1;
    symbol<int (*)(void**)>(blas, "cublasCreate_v2")(&handle);
    symbol<int (*)(void*, int)>(blas, "cublasSetMathMode")(handle, PEDANTIC);
    sgemm = symbol<decltype(sgemm)>(blas, "cublasSgemm_v2");
    symbol<int (*)(void**)>(lt, "cublasLtCreate")(&lt_handle);
    symbol<int (*)(void**, int, int)>(lt, "cublasLtMatmulDescCreate")(&description, COMPUTE_32F,
                                                                      REAL_32F);
    symbol<int (*)(void*, int, const void*, size_t)>(lt, "cublasLtMatmulDescSetAttribute")(
        description, DESC_TRANSA, &OP_T, sizeof OP_T);
    layout = symbol<decltype(layout)>(lt, "cublasLtMatrixLayoutCreate");
    preference = symbol<decltype(preference)>(lt, "cublasLtMatmulPreferenceCreate");
    set_preference =
        symbol<decltype(set_preference)>(lt, "cublasLtMatmulPreferenceSetAttribute");
    heuristic = symbol<decltype(heuristic)>(lt, "cublasLtMatmulAlgoGetHeuristic");
    matmul = symbol<decltype(matmul)>(lt, "cublasLtMatmul");
    check(cudaMalloc(&workspace, WORKSPACE), "cudaMalloc");
  }
};

struct Candidate {
  std::string name;
  std::function<void()> call;
  std::vector<float> us;
};

void answer(Cublas& cublas, int m, int n, int k, int repetitions, void* flush, size_t flush_bytes) {
  const size_t a_count = size_t(m) * k, b_count = size_t(n) * k, c_count = size_t(m) * n;
  float *a, *b, *c, *expected;
  unsigned* worst;
  check(cudaMalloc(&a, 4 * a_count), "cudaMalloc");
  check(cudaMalloc(&b, 4 * b_count), "cudaMalloc");
  check(cudaMalloc(&c, 4 * c_count), "cudaMalloc");
  check(cudaMalloc(&expected, 4 * c_count), "cudaMalloc");
  check(cudaMalloc(&worst, 4), "cudaMalloc");
  fill<<<512, 256>>>(a, a_count, 1);
  fill<<<512, 256>>>(b, b_count, 2);

  const float one = 1, zero = 0;
  constexpr int OP_T = 1, OP_N = 0, MAX_WORKSPACE = 1;
  std::vector<Candidate> all;
  all.push_back({"run_custom", [=] {
                   const ::thrust::sgemm_grader::view view;
                   ::thrust::device_vector<float> va(view, a, a_count), vb(view, b, b_count),
                       vc(view, c, c_count);
                   run_custom<float>(va, vb, vc, m, n, k);
                 }, {}});
#ifdef DIVISIONS
  const Device& device = this_device();
  const Estimate estimate = {m, n, k, device};
  const double limit = 2 * estimate.best().clocks;
  estimate.each([&](const Choice& choice) {
    if (choice.clocks > limit) return;
    std::string name = std::to_string(choice.kernel);
    for (int each : {choice.slices, choice.whole, choice.sharers})
      name += "/" + std::to_string(each);
    all.push_back({name, [=] { launch(choice, a, b, c, m, n, k, this_device()); }, {}});
  });
#endif
  const size_t ours = all.size();
  all.push_back({"cublasSgemm", [&, a, b, c] {
                   cublas.sgemm(cublas.handle, OP_T, OP_N, m, n, k, &one, a, k, b, k, &zero, c, m);
                 }, {}});
  void *a_layout, *b_layout, *c_layout, *preference;
  cublas.layout(&a_layout, 0, k, m, k);
  cublas.layout(&b_layout, 0, k, n, k);
  cublas.layout(&c_layout, 0, m, n, m);
  cublas.preference(&preference);
  cublas.set_preference(preference, MAX_WORKSPACE, &WORKSPACE, sizeof WORKSPACE);
  Heuristic found[CANDIDATES];
  int count = 0;
  cublas.heuristic(cublas.lt_handle, cublas.description, a_layout, b_layout, c_layout, c_layout,
                   preference, CANDIDATES, found, &count);
  for (int i = 0; i < count; ++i)
    if (found[i].state == 0)
      all.push_back({"cublasLt_" + std::to_string(i + 1), [&, a, b, c, i] {
                       cublas.matmul(cublas.lt_handle, cublas.description, &one, a, a_layout, b,
                                     b_layout, &zero, c, c_layout, c, c_layout, &found[i],
                                     cublas.workspace, found[i].workspace, nullptr);
                     }, {}});

  // Twice, because a second call of run_custom may do other things than the first.
  cublas.sgemm(cublas.handle, OP_T, OP_N, m, n, k, &one, a, k, b, k, &zero, expected, m);
  check(cudaMemset(worst, 0, 4), "cudaMemset");
  for (size_t call = 0; call < 2 * ours; ++call) {
    check(cudaMemset(c, 0xff, 4 * c_count), "cudaMemset");
    all[call / 2].call();
    compare<<<512, 256>>>(c, expected, c_count, worst);
  }
  float difference;
  check(cudaMemcpy(&difference, worst, 4, cudaMemcpyDeviceToHost), "the first calls");

  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  for (int turn = 0; turn < repetitions; ++turn)
    for (size_t i = 0; i < all.size(); ++i) {
      Candidate& each = all[turn % 2 ? all.size() - 1 - i : i];
      spin<<<1, 1>>>(static_cast<unsigned long long>(1000 * HEAD_START_US));
      cudaMemsetAsync(flush, 0, flush_bytes);
      cudaEventRecord(begin);
      each.call();
      cudaEventRecord(end);
      check(cudaEventSynchronize(end), "a timed call");
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
      each.us.push_back(1e3f * milliseconds);
    }
  // Two sums of k products of size about 1, each up to 3.9e-7 k away from FP64: so cublasSgemm's at
  // 12151 x 10900 x 5637.
  std::printf("%d %d %d %.4f", m, n, k, difference / (8e-7 * k + 1e-6));
  for (Candidate& each : all) {
    std::nth_element(each.us.begin(), each.us.begin() + repetitions / 2, each.us.end());
    std::printf(" %s %.3f", each.name.c_str(), each.us[repetitions / 2]);
  }
  std::printf("\n");
  std::fflush(stdout);
  for (void* each : {(void*)a, (void*)b, (void*)c, (void*)expected, (void*)worst}) cudaFree(each);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
}

}  // namespace shapes

int main(int, char** arguments) {
  shapes::Cublas cublas(arguments[1], arguments[2]);
  int l2 = 0;
  shapes::check(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, 0), "no GPU");
  const size_t flush_bytes = 2 * size_t(l2) + (1 << 20);
  void* flush = nullptr;
  shapes::check(cudaMalloc(&flush, flush_bytes), "cudaMalloc");
  int m = 0, n = 0, k = 0, repetitions = 0;
  while (std::scanf("%d %d %d %d", &m, &n, &k, &repetitions) == 4)
    shapes::answer(cublas, m, n, k, repetitions, flush, flush_bytes);
}
