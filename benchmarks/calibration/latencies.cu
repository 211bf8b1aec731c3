// Latencies and rates of one multiprocessor: each kernel writes cycles to `out`. It follows the
// grader's card.cu, whose types and clock it uses.
__device__ u32 shared_address(const void* p) { return u32(__cvta_generic_to_shared(p)); }

// --- chains of loads, each of which waits for the one before ---------------------------------

// 128 loads of shared memory whose words hold their own address; `out[0]`: cycles of all.
template <int BYTES>
__device__ void shared_chain(u32* out) {
  __shared__ __align__(16) u32 words[1024];
  u32 a = shared_address(words) + 16 * (threadIdx.x % 8), b, c, d, start = 0, stop = 0;
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) words[i] = a;
  __syncthreads();
  for (int pass = 0; pass < 2; ++pass) {
    start = now();
#pragma unroll
    for (int i = 0; i < 128; ++i) {
      if (BYTES == 4) asm volatile("ld.volatile.shared.u32 %0, [%0];" : "+r"(a));
      if (BYTES == 8) asm volatile("ld.volatile.shared.v2.u32 {%0, %1}, [%0];" : "+r"(a), "=r"(b));
      if (BYTES == 16)
        asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%0];"
                     : "+r"(a), "=r"(b), "=r"(c), "=r"(d));
    }
    stop = now();
  }
  if (threadIdx.x == 0) out[0] = stop - start, out[1] = a;
}
extern "C" __global__ void shared_chain4(u32* out) { shared_chain<4>(out); }
extern "C" __global__ void shared_chain8(u32* out) { shared_chain<8>(out); }
extern "C" __global__ void shared_chain16(u32* out) { shared_chain<16>(out); }

// Of the L1; card.cu has those of the L2 and of DRAM.
extern "C" __global__ void l1_chain(u32* out, u64* lines, int count) {
  line_chain<true>(out, lines, count);
}

// --- rates -----------------------------------------------------------------------------------

extern "C" __global__ void barriers(u32* out) {
  __syncthreads();
  const u32 start = now();
#pragma unroll
  for (int i = 0; i < 64; ++i) __syncthreads();
  const u32 stop = now();
  if (threadIdx.x == 0) out[0] = stop - start;
}

// 256 accesses to shared memory by each warp, those of lane l at element l >> shift.
template <int BYTES, bool STORE>
__device__ void shared_rate(u32* out, int shift) {
  __shared__ __align__(16) u32 words[4096];
  for (int i = threadIdx.x; i < 4096; i += blockDim.x) words[i] = i;
  const u32 a = shared_address(words) + (threadIdx.x % 32 >> shift) * BYTES;
  u32 r[8][4] = {}, sum = 0, start = 0;
  for (int pass = 0; pass < 2; ++pass) {
    __syncthreads();
    start = now();
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int j = 0; j < 32; ++j) {
        const u32 at = a + j % 8 * 512;
        u32* v = r[j % 8];
        if (STORE && BYTES == 4)
          asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(at), "r"(v[0]));
        if (STORE && BYTES == 16)
          asm volatile("st.volatile.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(v[0]),
                       "r"(v[1]), "r"(v[2]), "r"(v[3]));
        if (!STORE && BYTES == 4)
          asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(v[0]) : "r"(at));
        if (!STORE && BYTES == 8)
          asm volatile("ld.volatile.shared.v2.u32 {%0, %1}, [%2];"
                       : "=r"(v[0]), "=r"(v[1])
                       : "r"(at));
        if (!STORE && BYTES == 16)
          asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                       : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                       : "r"(at));
      }
#pragma unroll
    for (int j = 0; j < 8; ++j) sum += r[j][0] + r[j][1] + r[j][2] + r[j][3];
    __syncthreads();
  }
  const u32 stop = now() + (sum == 12345);
  if (threadIdx.x == 0) out[0] = stop - start;
}
#define RATE(NAME, BYTES, STORE)                                                \
  extern "C" __global__ void __launch_bounds__(512) NAME(u32* out, int shift) { \
    shared_rate<BYTES, STORE>(out, shift);                                      \
  }
RATE(load4, 4, false)
RATE(load8, 8, false)
RATE(load16, 16, false)
RATE(store4, 4, true)
RATE(store16, 16, true)
