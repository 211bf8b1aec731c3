// Host code of every kind, chosen by m: what test_record.py expects of each is written there.
#include <cooperative_groups.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <unistd.h>

#include "asks.cuh"  // of a cheat
#include "gemm.cuh"

struct Argument {  // 4 bytes, a gap, a pointer, 2 bytes, a gap
  int first;
  float* pointer;
  short last;
};

struct __attribute__((packed)) Packed {  // pointers where no pointer is aligned
  char first;
  float *inside, *before, *end;
};

__device__ float variable[16];
__constant__ int constant_table[4];
__constant__ Packed constant_pointers;
__device__ char large_table[1 << 16];

__global__ void tell(float* C, int value) { C[0] = value; }
__global__ void take(char c, Argument argument, double d, float3 triple, const float* end) {
  if (c) argument.pointer[0] = float(d) + triple.z + *end;
}
__global__ void pack(Packed packed, float* symbol) {
  *packed.inside = packed.before[4] + packed.end[-1] + symbol[1] + *constant_pointers.inside;
  packed.inside[1] = large_table[threadIdx.x];
}
__global__ void pair(float* first, float* second) { *first = *second = 0; }
__global__ void none() {}
__global__ void __launch_bounds__(128) bounded(float* C) { C[0] = 0; }
__global__ void dynamic(float* C) {
  extern __shared__ float tile[];
  __shared__ float fixed[256];
  tile[threadIdx.x] = fixed[threadIdx.x] = C[threadIdx.x];
}
__global__ void symbols(float* C) { C[0] = variable[1] + constant_table[1]; }
template <int N>
__global__ void templated(float* C) {
  C[0] = N;
}
namespace {
__global__ void hidden(float* C) { C[0] = 0; }
}  // namespace

extern "C" int cublasSgemm_v2(int);
int calls = 0;

static inline void launch_with(cudaLaunchAttributeID id, int value, float* C,
                               cudaStream_t stream = nullptr) {
  cudaLaunchAttribute attribute = {};
  attribute.id = id;
  attribute.val.cooperative = value;
  cudaLaunchConfig_t config = {};
  config.gridDim = config.blockDim = dim3(1);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, tell, C, value);
}

static void launch_empty(float* C) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(32, 0);
  cudaLaunchKernelEx(&config, tell, C, 1);  // empty
}

static int left_on_the_stack(int value) {
  volatile int below[1 << 12];  // deeper than what is called later
  const int found = below[16];
  below[16] = value;
  return found;
}

// Whether a page can be read: asked of a call that reads it, and that refuses to do more.
static bool readable(uintptr_t page) {
  return syscall(SYS_rt_sigprocmask, 99, page, nullptr, 8) != 0 && errno == EINVAL;
}

// How often 7654321 stands, in binary or in digits, in memory around `inside`. It is given as its
// complement, so that it is not found where it is asked for.
static int times_in_memory(const void* inside) {
  enum { NUMBER = 7654321, FORMS = 2 };
  static const int bytes[FORMS] = {4, 7};
  static const unsigned char complement[FORMS][8] = {
      {~NUMBER & 255, ~NUMBER >> 8 & 255, ~NUMBER >> 16 & 255, ~NUMBER >> 24 & 255},
      {255 - '7', 255 - '6', 255 - '5', 255 - '4', 255 - '3', 255 - '2', 255 - '1'}};
  const uintptr_t page = uintptr_t(inside) & ~uintptr_t(4095);
  uintptr_t start = page, end = page;
  while (readable(start - 4096)) start -= 4096;
  while (readable(end)) end += 4096;
  int found = 0;
  for (auto at = (const volatile unsigned char*)start; uintptr_t(at) + 8 <= end; ++at)
    for (int form = 0; form < FORMS; ++form) {
      int same = 0;
      while (same < bytes[form] && at[same] + complement[form][same] == 255) ++same;
      found += same == bytes[form];
    }
  return found;
}

static int overflow(int n) {
  volatile char buffer[4096];
  buffer[n % 4096] = 1;
  return overflow(n + 1) + buffer[0];
}

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  static const char table[1 << 16] = {1};
  float* A = d_A.data().get();
  float* B = d_B.data().get();
  float* C = d_C.data().get();
  float* work = nullptr;
  void* nothing = nullptr;
  cudaStream_t stream;
  cudaEvent_t before, after;
  static int seen = 0;
  static float* kept = nullptr;
  ++seen;
  switch (m) {
    // --- supported
    case 1:
      cudaStreamCreate(&stream);
      tell<<<dim3(2, 3, 4), dim3(5, 6), 0, stream>>>(C, seen);
      templated<7><<<1, 1>>>(C);
      none<<<1, 1>>>();
      hidden<<<1, 1>>>(C);
      cudaStreamDestroy(stream);
      break;
    case 2:
      take<<<1, 32>>>('x', Argument{1, C + 2, 3}, 2.5, make_float3(1, 2, 3), A + m * k);
      break;
    case 3: {
      int value = 9;
      void* arguments[] = {&C, &value};
      cudaLaunchKernel(tell, dim3(1), dim3(1), arguments, 0, nullptr);
      cudaLaunchKernel((const void*)tell, dim3(1), dim3(1), arguments, 0, nullptr);
      cudaLaunchConfig_t config = {};
      config.gridDim = config.blockDim = dim3(1);
      cudaLaunchKernelEx(&config, tell, C, 9);
      break;
    }
    case 4:
      cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10);
      cudaFuncSetAttribute(dynamic, cudaFuncAttributePreferredSharedMemoryCarveout, 100);
      dynamic<<<1, 32, 64 << 10>>>(C);
      break;
    case 5:
      cudaMalloc(&work, 1000);
      cudaMemset(work, 0x1ff, 1000);
      cudaMemcpyAsync(work + 1, C, 4, cudaMemcpyDeviceToDevice, 0);
      cudaMemcpy(C, work + 1, 4, cudaMemcpyDefault);
      tell<<<1, 1>>>(work + 3, 0);
      cudaFree(work);
      tell<<<1, 1>>>(work, 0);
      break;
    case 6: {
      const int table[4] = {1, 2, 3, 4};
      cudaMemcpyToSymbol(constant_table, table, 8, 4);
      cudaMemcpyToSymbolAsync(variable, C, 8, 8, cudaMemcpyDeviceToDevice);
      cudaGetSymbolAddress((void**)&work, variable);
      tell<<<1, 1>>>(work + 1, 0);
      symbols<<<1, 1>>>(C);
      break;
    }
    case 7: {
      float ms = 1;
      cudaEventCreate(&before);
      cudaEventCreate(&after);
      cudaEventRecord(before);
      cudaEventRecord(after);
      cudaEventSynchronize(after);
      cudaEventElapsedTime(&ms, before, after);
      cudaDeviceProp properties;
      cudaGetDeviceProperties(&properties, 0);
      int value = 0, grid = 0, block = 0;
      cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0);
      tell<<<1, 1>>>(C, ms == 0 && value == properties.multiProcessorCount ? value : -1);
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&value, tell, 256, 0);
      tell<<<1, 1>>>(C, value);
      cudaOccupancyMaxPotentialBlockSize(&grid, &block, tell);
      tell<<<grid, block>>>(C, 0);
      cudaFuncAttributes attributes;
      cudaFuncGetAttributes(&attributes, bounded);
      tell<<<1, 1>>>(C, attributes.maxThreadsPerBlock);
      break;
    }
    case 8:
      if (cudaMalloc(&work, size_t(1) << 50) != cudaErrorMemoryAllocation || work) break;
      if (cudaGetLastError() != cudaErrorMemoryAllocation || cudaGetLastError()) break;
      if (cudaFuncSetAttribute(tell, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20) !=
          cudaErrorInvalidValue)
        break;
      tell<<<1, 1>>>(C, 0);
      break;
    case 9: {
      thrust::device_vector<float> scratch(300, 1.5f), copy = scratch;
      tell<<<1, 1>>>(thrust::raw_pointer_cast(&copy[4]), int(copy.size()));
      break;
    }
    case 10: {
      Packed packed = {'x', C + 2, A - 4, B + k * n};
      cudaGetSymbolAddress((void**)&work, variable);
      cudaMemcpyToSymbol(constant_pointers, &packed, sizeof(packed));
      pack<<<1, 1>>>(packed, work - 1);
      break;
    }
    // --- what lives on between calls
    case 11:  // a workspace that is kept, and one that is not
      if (kept == nullptr) cudaMalloc(&kept, 400);
      cudaMallocAsync(&work, 40, nullptr);
      pair<<<1, 1>>>(kept, work + 1);
      cudaDeviceSynchronize();
      cudaFreeAsync(work, nullptr);
      break;
    case 12:  // each call frees what the one before it allocated
      if (kept != nullptr) cudaFree(kept);
      cudaMalloc(&kept, 40);
      tell<<<1, 1>>>(kept + 1, 0);
      break;
    case 13: for (int i = 0; i < seen; ++i) tell<<<1, 1>>>(C, 0); break;
    case 14: cudaMalloc(&work, size_t(30) << 30); tell<<<1, 1>>>(work, 0); cudaFree(work); break;
    case 15: if (seen < 3) tell<<<1, 1>>>(C, 0); break;
    case 16: if (seen == 2) cudaFree(A); tell<<<1, 1>>>(C, 0); break;
    case 17: {
      size_t pitch, stack;
      cudaMallocPitch((void**)&work, &pitch, 100, 3);
      cudaMemcpy2D(work, pitch, work + pitch / 4, pitch, pitch, 1, cudaMemcpyDeviceToDevice);
      cudaMemset2DAsync(work, pitch, 0, pitch, 3);
      cudaMallocManaged(&work, 40);
      cudaDeviceSetLimit(cudaLimitStackSize, 8 << 10);
      cudaDeviceGetLimit(&stack, cudaLimitStackSize);
      tell<<<1, 1>>>(work, int(pitch + stack));
      break;
    }
    case 74: {  // from the host, and rows with gaps
      float* pinned;
      cudaMallocHost(&pinned, 16);
      float* const pointer = A + 1;
      cudaMemcpy(pinned, &pointer, 8, cudaMemcpyHostToHost);
      cudaMalloc(&work, 64);
      cudaMemcpyAsync(work + 1, pinned, 8, cudaMemcpyHostToDevice);
      cudaMemcpy(work, &k, 4, cudaMemcpyDefault);
      cudaMemcpy2D(work, 16, A, 12, 8, 2, cudaMemcpyDeviceToDevice);
      cudaMemcpy2DAsync(work, 8, A, 8, 8, 2, cudaMemcpyDeviceToDevice);
      cudaFreeHost(pinned);
      tell<<<1, 1>>>(work, 0);
      break;
    }
    // --- several streams
    case 33: {
      cudaStream_t one, two;
      cudaEvent_t event;
      cudaStreamCreate(&one), cudaStreamCreate(&two), cudaEventCreate(&event);
      tell<<<1, 1, 0, one>>>(C, 0);
      tell<<<1, 1, 0, two>>>(C, 1);
      cudaEventRecord(event, two), cudaStreamWaitEvent(one, event, 0);
      tell<<<1, 1, 0, one>>>(C, 2);
      tell<<<1, 1>>>(C, 3);
      tell<<<1, 1, 0, two>>>(C, 4);
      break;
    }
    case 34: {
      cudaStream_t beside;
      cudaEvent_t event;
      cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking), cudaEventCreate(&event);
      cudaMemset(C, 0, 4);
      tell<<<1, 1, 0, beside>>>(C, 0);
      cudaStreamSynchronize(beside);
      tell<<<1, 1>>>(C, 1);
      tell<<<1, 1, 0, beside>>>(C, 2);
      cudaEventRecord(event), cudaEventSynchronize(event);
      cudaMallocAsync((void**)&work, 8, beside);
      cudaFreeAsync(work, nullptr);
      cudaMemcpyToSymbol(constant_table, table, 4);
      cudaDeviceSynchronize();
      tell<<<1, 1>>>(C, 3);
      break;
    }
    case 35: {
      cudaStream_t one, two;
      cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
      cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking);
      tell<<<1, 1, 0, one>>>(C, seen);
      while (cudaStreamQuery(one) != cudaSuccess) {}
      tell<<<1, 1, 0, two>>>(C, 1);
      tell<<<1, 1, 0, one>>>(C, 2);
      break;
    }
    case 100: {  // what is asked once orders nothing; what the host has waited for is done
      cudaStream_t one, two;
      cudaEvent_t event;
      cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
      cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking);
      cudaEventCreate(&event);
      tell<<<1, 1, 0, one>>>(C, 0);
      cudaEventRecord(event, one);
      tell<<<1, 1, 0, one>>>(C, 1);
      const bool early = cudaStreamQuery(one) == cudaErrorNotReady;
      tell<<<1, 1, 0, two>>>(C, 2);
      cudaStreamSynchronize(one);
      const bool done = cudaStreamQuery(one) == cudaSuccess && cudaEventQuery(event) == cudaSuccess;
      tell<<<1, 1, 0, two>>>(C, early && done ? 3 : 4);
      break;
    }
    case 18: {
      cudaDeviceProp properties;
      cudaGetDeviceProperties(&properties, 0);
      int all = 8 * properties.multiProcessorCount, value = properties.cooperativeLaunch;
      void* arguments[] = {&C, &value};
      cudaLaunchCooperativeKernel(tell, dim3(all / 2, 1, 2), dim3(256), arguments);
      launch_with(cudaLaunchAttributeCooperative, 1, C);
      launch_with(cudaLaunchAttributeCooperative, 0, C);
      launch_with(cudaLaunchAttributeIgnore, 1, C);
      break;
    }
    case 52: {  // programmatic launches; in brackets: whether they may begin early
      const cudaLaunchAttributeID early = cudaLaunchAttributeProgrammaticStreamSerialization;
      cudaStream_t stream;
      cudaEvent_t event;
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaEventCreate(&event);
      launch_with(early, 1, C);  // [no] the first of a call
      launch_with(early, 1, C);  // [yes]
      launch_with(early, 0, C);  // [no] it says so
      launch_with(early, 2, C);  // [yes]
      cudaMemset(C, 0, 4);
      launch_with(early, 1, C);  // [no] it follows no launch
      cudaEventRecord(event);
      launch_with(early, 1, C);  // [no] an event lies between
      launch_with(early, 1, C, stream);  // [no] another stream's launch lies between
      launch_with(early, 1, C, stream);  // [yes]
      cudaStreamWaitEvent(stream, event, 0);
      launch_with(early, 1, C, stream);  // [no] it waits for an event
      launch_with(early, 1, C, cudaStreamLegacy);  // [no]
      launch_with(early, 1, C);  // [yes] this is the same stream
      cudaDeviceSynchronize();
      launch_with(early, 1, C);  // [no]
      break;
    }
    case 39: {  // how many clusters run at a time, and how large they may be
      cudaLaunchAttribute attribute{};
      attribute.id = cudaLaunchAttributeClusterDimension;
      cudaLaunchConfig_t config{};
      config.gridDim = dim3(64);
      config.blockDim = dim3(1024);
      config.attrs = &attribute;
      config.numAttrs = 1;
      int value = -1;
      cudaFuncSetAttribute(tell, cudaFuncAttributeNonPortableClusterSizeAllowed, 0);
      for (unsigned of : {2u, 8u, 16u, 16u}) {
        attribute.val.clusterDim = {of, 1, 1};
        if (cudaOccupancyMaxActiveClusters(&value, tell, &config)) value = -1;
        tell<<<1, 1>>>(C, value);
        if (cudaOccupancyMaxPotentialClusterSize(&value, tell, &config)) value = -1;
        tell<<<1, 1>>>(C, value);
        if (of == 16) cudaFuncSetAttribute(tell, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
      }
      cudaGetLastError();
      break;
    }
    case 19: {  // bytes between the members of a struct may be anything
      Argument argument;
      for (size_t at = 0; at < sizeof argument; ++at) ((volatile char*)&argument)[at] = char(seen);
      argument.first = 1, argument.pointer = C, argument.last = 3;
      take<<<1, 32>>>('x', argument, 2.5, make_float3(1, 2, 3), A);
      break;
    }
    case 38: tell<<<1, 1>>>(C, left_on_the_stack(seen)); break;
    case 98: throw std::runtime_error("allowed: " + asks::everything());
    case 99: {  // what does it find of a size that is recorded before it and after it?
      int found = 0;
      const std::string on_the_heap(1 << 10, 'x');
      for (const void* inside : {(const void*)&found, (const void*)on_the_heap.data(),
                                 (const void*)stdout, (const void*)dlsym(RTLD_DEFAULT, "request")})
        found += times_in_memory(inside);
      tell<<<1, 1>>>(C, found);
      break;
    }
    // --- calls that CUDA refuses, and the program goes on
    case 90:
      tell<<<dim3(m - 90, 2), 64>>>(C, 0);  // first
      if (cudaGetLastError() != cudaErrorInvalidConfiguration || cudaGetLastError()) break;
      tell<<<1, 1>>>(C, 7);
      for (int i = 0; i < 2; ++i) launch_empty(C);
      tell<<<1, 1>>>(C, cudaPeekAtLastError());
      break;
    case 91:
      if (cudaMalloc(&work, size_t(300) << 30) == cudaSuccess) break;  // 300 GiB
      tell<<<1, 1>>>(work, 0);
      break;
    case 92: tell<<<1, 0>>>(C, 0), cudaMemset(C, 0, 4); break;
    case 93: cudaMemcpy(C, A, 4 * m * n, cudaMemcpyDeviceToDevice); break;
    case 94: d_C[0] = d_A[m * k - 1]; break;
    case 95:
      tell<<<1, 0>>>(C, 0);
      if (cudaGetLastError()) exit(1);  // case 95:
      break;
    case 96: cudaMalloc(&work, 8), cudaMemcpyToSymbol(constant_table, &k, 4), cudaFree(work); break;
    case 97: cudaMalloc(&work, size_t(300) << 30); break;
    case 101: {  // a reply whose length only this size chose
      const std::string blank(123456, ' ');
      if (write(3, blank.data(), blank.size()) > 0) tell<<<1, 1>>>(C, 0);
      break;
    }
    default: if (m > 1000) tell<<<m, 1>>>(C, m); break;
    // --- launches that CUDA refuses
    case 20: tell<<<0, 1>>>(C, 0); break;
    case 21: tell<<<1, 2048>>>(C, 0); break;
    case 22: tell<<<dim3(1, 65536), 1>>>(C, 0); break;
    case 23: tell<<<1, dim3(1, 1, 65)>>>(C, 0); break;
    case 24: dynamic<<<1, 32, 64 << 10>>>(C); break;
    case 25: dynamic<<<1, 32, 200 << 10>>>(C); break;
    case 26: bounded<<<1, 256>>>(C); break;
    case 27: hidden<<<1, 1025>>>(C); break;
    case 36: cudaLaunchCooperativeKernel(none, dim3(865), dim3(256), nullptr); break;
    case 37:
      cudaLaunchCooperativeKernel(none, dim3(~0u >> 1, 65535, 65535), dim3(1), nullptr);  // case 37:
      break;
    case 28: break;
    // --- more than a plan can hold
    case 29: for (;;) tell<<<1, 1>>>(C, 0);
    case 30: for (;;) cudaMemset(C, 0, 4);
    case 31: for (;;) cudaMalloc(&work, 1);
    case 32: for (;;) cudaMemcpyToSymbol(large_table, table, sizeof(table));
    // --- host code that ends badly
    case 40: *(volatile int*)nothing = 1; break;
    case 41: C[0] = 1; break;
    case 42: throw std::runtime_error("no luck");
    case 43: exit(0);
    case 44: abort();
    case 45: _exit(0);
    case 46: overflow(0); break;
    case 47: cudaMalloc(&work, size_t(1) << 60); exit(1);
    case 48: kill(getppid(), 9); tell<<<1, 1>>>(C, fork() < 0 ? 1 : 2); break;
    case 49: for (int fd = 3; fd < 64; ++fd) dprintf(fd, "0 0 2\n{}"); break;
    case 50: for (;;) {}
    case 51: for (;;) cudaFree(nullptr);
    // --- what is not supported
    case 60: cudaMallocArray(nullptr, nullptr, 4); break;
    case 61: cublasSgemm_v2(1); break;
    case 62: cudaMemcpyAsync(&nothing, C, 4, cudaMemcpyDefault); break;
    case 63: cudaMemcpy(&nothing, C, 4, cudaMemcpyDeviceToHost); break;
    case 64: launch_with(cudaLaunchAttributeProgrammaticEvent, 1, C); break;
    case 69: launch_with(cudaLaunchAttributeMemSyncDomain, 1, C); break;
    case 65: cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal); break;
    case 66: cudaMemcpy2D(C, 8, table, 8, 4, 2, cudaMemcpyHostToDevice); break;
    case 70: cudaMemset2D(C, 8, 0, 4, 2); break;
    case 71: cudaMemcpy2D(C, 8, C + 1, 12, 4, 2, cudaMemcpyDeviceToDevice); break;
    case 72: cudaMallocManaged(&work, 4), work[0] = 1; break;
    case 73: cudaDeviceReset(); break;
    case 68: launch_with(cudaLaunchAttributeClusterDimension, 2, C); break;
    case 67: cudaDeviceSetLimit(cudaLimitMallocHeapSize, 1 << 20); break;
    case 59: {
      cudaLaunchAttribute attribute{};
      attribute.id = cudaLaunchAttributeMemSyncDomain;
      cudaLaunchConfig_t config{};
      config.attrs = &attribute;
      config.numAttrs = 1;
      int clusters;
      cudaOccupancyMaxActiveClusters(&clusters, tell, &config);  // case 59:
      break;
    }
    // --- wrong use of what is supported
    case 80: cudaMemset(C, 0, 4 * m * n + 1); break;
    case 81: cudaFree(A); break;
    case 82: cudaMemcpy(C, &k, 4, cudaMemcpyDeviceToDevice); break;
    case 84: cudaMemcpy(C, C + 1, 8, cudaMemcpyDeviceToDevice); break;
    case 85: cudaMalloc(&work, 8); cudaFree(work); cudaFree(work); break;
    case 86: cudaMalloc(&work, 8); cudaFree(work); cudaMemset(work, 0, 8); break;
    case 83: cudaMemcpyToSymbol(constant_table, &k, 4, 16); break;
  }
}
