// Rung 4: a row is read once, and stays in registers.
//
// Changed:  a block has a row again. Each thread loads up to eight float4 before it uses the first,
//           keeps them, and turns them into exp(x - its own maximum) in place; warps join their
//           threads' pairs by shuffles, and the block its warps' behind one barrier. Rows that need
//           not begin at multiples of 16 bytes are loaded one by one. Rows of more than 8192
//           elements do not fit: the threads read what lies behind twice, as before.
// Why:      a row comes from memory once, which is all that the task asks for, and 128 bytes of
//           each thread are on the way at a time.
// Bound:    DRAM for rows that fill the registers. A row of 64 elements keeps 16 of 256 threads
//           busy; and of a longer row the rest is read twice.
// Command:  grade --lab softmax reference/softmax/04_registers
#include <cfloat>

#include "softmax.cuh"

constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr int KEPT = 32, MOST = THREADS * KEPT;  // elements of a thread, and of a row

struct Sum {
  float most = -FLT_MAX, value = 0;  // value: the sum of exp(x - most)
};

__device__ Sum join(Sum a, Sum b) {
  Sum both;
  both.most = fmaxf(a.most, b.most);
  both.value = a.value * __expf(a.most - both.most) + b.value * __expf(b.most - both.most);
  return both;
}

// Of a group of lanes; all of them get it.
template <int LANES>
__device__ Sum joined(Sum own) {
#pragma unroll
  for (int apart = LANES / 2; apart > 0; apart /= 2)
    own =
        join(own, {__shfl_xor_sync(~0u, own.most, apart), __shfl_xor_sync(~0u, own.value, apart)});
  return own;
}

template <int WIDTH>  // of an access, in elements
__global__ void softmax(const float* in, float* out, int columns) {
  struct alignas(4 * WIDTH) Wide { float x[WIDTH]; };
  constexpr int COUNT = KEPT / WIDTH;
  __shared__ Sum part[WARPS];
  const int t = threadIdx.x;
  const float* x = in + size_t(blockIdx.x) * columns;
  float* y = out + size_t(blockIdx.x) * columns;

  Wide v[COUNT];
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    const int j = (i * THREADS + t) * WIDTH;
#pragma unroll
    for (float& each : v[i].x) each = -INFINITY;
    if (j < columns) v[i] = *reinterpret_cast<const Wide*>(x + j);
  }
  Sum own;
#pragma unroll
  for (Wide& wide : v)
#pragma unroll
    for (float each : wide.x) own.most = fmaxf(own.most, each);
#pragma unroll
  for (Wide& wide : v)
#pragma unroll
    for (float& each : wide.x) own.value += each = __expf(each - own.most);
  const float most = own.most;  // below which this thread's values are powers
  for (int j = MOST + t; j < columns; j += THREADS) own = join(own, {x[j], 1});
  own = joined<32>(own);
  if (t % 32 == 0) part[t / 32] = own;
  __syncthreads();
  const Sum all = joined<WARPS>(part[t % WARPS]);

  const float factor = 1 / all.value, kept = __expf(most - all.most) * factor;
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    const int j = (i * THREADS + t) * WIDTH;
#pragma unroll
    for (float& each : v[i].x) each *= kept;
    if (j < columns) *reinterpret_cast<Wide*>(y + j) = v[i];
  }
  for (int j = MOST + t; j < columns; j += THREADS) y[j] = __expf(x[j] - all.most) * factor;
}

template <>
void run_custom<float>(thrust::device_vector<float>& in, thrust::device_vector<float>& out,
                       int rows, int columns) {
  const auto kernel = columns % 4 == 0 ? softmax<4> : softmax<1>;
  kernel<<<rows, THREADS>>>(in.data().get(), out.data().get(), columns);
}
