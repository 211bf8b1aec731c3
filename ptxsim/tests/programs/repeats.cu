// Launches that repeat, of which some may be skipped; prints what memory holds in the end.
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

constexpr int N = 256;
__device__ int counter;
__constant__ int factor;

__global__ void scale(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x] * 2; }
__global__ void twice(int* values) { values[threadIdx.x] *= 2; }
__global__ void accumulate(const int* in, int* sum) { atomicAdd(sum, in[threadIdx.x]); }
__global__ void count(int* out) { out[threadIdx.x] = counter; }
__global__ void increase() { counter += 1; }
__global__ void multiply(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x] * factor; }
__global__ void say(const int* in, int* out) {
  out[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x == 0) printf("said\n");
}
__global__ void look_at_clock(long long* out) { out[threadIdx.x] = clock64(); }
__global__ void allocate(int* out) {
  int* const own = static_cast<int*>(malloc(4));
  *own = 3;
  out[threadIdx.x] = *own;
  free(own);
}
// What nobody uses may be read too early: known at a second look, from what the first one found.
__global__ void peek(int* values) {
  int unused;
  const int* const other = values + (threadIdx.x + 32) % N;
  values[threadIdx.x] += 1;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(unused) : "l"(other));
}
__global__ void overrun(int* out) { out[threadIdx.x + 1] = 1; }
__global__ void compute_for_long(int* out, unsigned times) {
  unsigned value = 1;
  for (unsigned k = 0; k < times; ++k) value = value * 1664525 + 1013904223 ^ k;
  out[threadIdx.x] = value;
}

int main(int, char** argv) {
  const std::string what = argv[1];
  const int times = 10;
  int host[N], *a, *b, *managed;
  for (int i = 0; i < N; ++i) host[i] = i;
  cudaMalloc(&a, sizeof host), cudaMalloc(&b, sizeof host);
  cudaMallocManaged(&managed, sizeof host);
  std::memcpy(managed, host, sizeof host);
  cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice);
  cudaMemset(b, 0, sizeof host);
  if (what == "long") {
    overrun<<<1, N>>>(b);
    printf("waits");
    fflush(stdout);
    compute_for_long<<<1, N>>>(b, ~0u);
    printf("never\n");
  }
  if (what == "stubborn") {
    signal(SIGINT, SIG_IGN);
    puts("waits");
    fflush(stdout);
    for (;;) pause();
  }
  if (what == "signals") {  // which come while a call waits for the device
    struct sigaction heard = {};
    heard.sa_handler = [](int) {};
    sigaction(SIGALRM, &heard, nullptr);
    const itimerval often = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &often, nullptr);
    compute_for_long<<<1, N>>>(b, 30000);
  }
  cudaStream_t one = nullptr, two = nullptr;
  long long sum = 0;
  for (int k = 0; k < times; ++k) {
    if (what == "same") scale<<<1, N>>>(a, b);
    if (what == "other") scale<<<1, N>>>(a, k % 2 ? b : managed);
    if (what == "pair") scale<<<1, N>>>(a, b), multiply<<<1, N>>>(b, managed);
    if (what == "raced") {
      if (k == 5) cudaStreamCreate(&one), cudaStreamCreate(&two);
      scale<<<1, N, 0, one>>>(a, b);
      if (two) scale<<<1, N, 0, two>>>(a, b);
    }
    if (what == "cleared") cudaMemset(b, 0, sizeof host), accumulate<<<1, N>>>(a, b);
    if (what == "accumulated") accumulate<<<1, N>>>(a, b);
    if (what == "in place") twice<<<1, N>>>(a);
    if (what == "managed") managed[0] = k, scale<<<1, N>>>(managed, b);
    if (what == "copied") {
      host[0] = k;
      cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice);
      scale<<<1, N>>>(a, b);
    }
    if (what == "counter") increase<<<1, 1>>>(), count<<<1, N>>>(b);
    if (what == "symbol") {
      cudaMemcpyToSymbol(factor, &k, sizeof k);
      multiply<<<1, N>>>(a, b);
    }
    if (what == "printed") say<<<1, N>>>(a, b);
    if (what == "clock") look_at_clock<<<1, 32>>>(reinterpret_cast<long long*>(b));
    if (what == "heap") allocate<<<1, N>>>(b);
    if (what == "peek") peek<<<1, N>>>(a);
    if (what == "overrun") overrun<<<1, N>>>(b);
    if (what == "freed") {
      scale<<<1, N>>>(a, b);
      if (k == 5) cudaFree(a);
    }
    cudaMemcpy(host, b, sizeof host, cudaMemcpyDeviceToHost);
    for (int i = 0; i < N; ++i) sum += host[i] * (i % 7 + 1LL) * (k + 1);
    if (what == "written") {
      scale<<<1, N>>>(a, b);
      cudaMemset(b, k, sizeof host);
    }
  }
  cudaMemcpy(host, a, sizeof host, cudaMemcpyDeviceToHost);
  for (int i = 0; i < N; ++i) sum += host[i] + managed[i];
  printf("%lld\n", sum);
}
