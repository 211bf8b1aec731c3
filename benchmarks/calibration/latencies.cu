// Latencies and rates of one multiprocessor: each kernel writes cycles to `out`.
using u32 = unsigned int;
using u64 = unsigned long long;

__device__ u32 now() {
  u32 t;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(t)::"memory");
  return t;
}
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
      if (BYTES == 8)
        asm volatile("ld.volatile.shared.v2.u32 {%0, %1}, [%0];" : "+r"(a), "=r"(b));
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

// 16 loads of each of `count` lines of 128 bytes, whose first word is its own address.
template <bool IN_L1>
__device__ void line_chain(u32* out, u64* lines, int count) {
  for (int i = 0; i < count; ++i) {
    u64 a = u64(lines + 16 * i);
    u32 start = 0, stop = 0;
    for (int pass = 0; pass < 3; ++pass) {
      start = now();
#pragma unroll
      for (int j = 0; j < 16; ++j) {
        if (IN_L1) asm volatile("ld.global.ca.u64 %0, [%0];" : "+l"(a));
        else asm volatile("ld.global.cg.u64 %0, [%0];" : "+l"(a));
      }
      if (a == 0) return;  // never: waits for the last
      stop = now();
    }
    out[i] = stop - start;
  }
}
extern "C" __global__ void l1_chain(u32* out, u64* lines, int count) {
  line_chain<true>(out, lines, count);
}
extern "C" __global__ void l2_chain(u32* out, u64* lines, int count) {
  line_chain<false>(out, lines, count);
}

// One load of each of `count` places, `step` words apart, which no cache holds, and then one of
// the sector `beside` words further. The first word of each place holds the address of the next.
extern "C" __global__ void dram_chain(u32* out, u64* place, int count, int beside) {
  for (int i = 0; i < count; ++i) {
    u64 next = 0, other = 0;
    const u32 start = now();
    asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(next) : "l"(place));
    if (next == 0) return;  // never: waits for it
    const u32 between = now();
    asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(other) : "l"(place + beside));
    if (other == 1) return;
    const u32 stop = now();
    out[2 * i] = between - start, out[2 * i + 1] = stop - between;
    place = (u64*)next;
  }
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
        if (STORE && BYTES == 4) asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(at), "r"(v[0]));
        if (STORE && BYTES == 16)
          asm volatile("st.volatile.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(v[0]),
                       "r"(v[1]), "r"(v[2]), "r"(v[3]));
        if (!STORE && BYTES == 4)
          asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(v[0]) : "r"(at));
        if (!STORE && BYTES == 8)
          asm volatile("ld.volatile.shared.v2.u32 {%0, %1}, [%2];"
                       : "=r"(v[0]), "=r"(v[1]) : "r"(at));
        if (!STORE && BYTES == 16)
          asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                       : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(at));
      }
#pragma unroll
    for (int j = 0; j < 8; ++j) sum += r[j][0] + r[j][1] + r[j][2] + r[j][3];
    __syncthreads();
  }
  const u32 stop = now() + (sum == 12345);
  if (threadIdx.x == 0) out[0] = stop - start;
}
#define RATE(NAME, BYTES, STORE)                                                        \
  extern "C" __global__ void __launch_bounds__(512) NAME(u32* out, int shift) {         \
    shared_rate<BYTES, STORE>(out, shift);                                              \
  }
RATE(load4, 4, false)
RATE(load8, 8, false)
RATE(load16, 16, false)
RATE(store4, 4, true)
RATE(store16, 16, true)
