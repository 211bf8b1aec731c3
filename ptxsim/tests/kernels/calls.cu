#define KERNEL extern "C" __global__ void

struct Wide {
  double a;
  char b[3];
};
using Step = Wide (*)(Wide, int);
extern __device__ Step steps[3];
__device__ Wide add(Wide w, int n) { return {w.a + n, {w.b[2], w.b[0], w.b[1]}}; }
__device__ Wide twice(Wide w, int n) { return add(add(w, n), n); }
__device__ Wide again(Wide w, int n) { return n ? steps[n % 3](steps[1](w, 1), n - 1) : w; }
__device__ Step steps[3] = {add, twice, again};
__device__ Step none;
__device__ void nothing(float*) {}
__device__ void (*other)(float*) = nothing;

KERNEL lanes(float* out, int n) {
  const Wide w = steps[threadIdx.x % 3](Wide{1, {1, 2, 3}}, threadIdx.x);
  out[threadIdx.x] = w.a + 100 * w.b[0] + __syncthreads_count(w.a > 0);
}

KERNEL calls_null(float* out, int n) { out[0] = (n > 7 ? steps[0] : none)(Wide{}, 1).a; }
KERNEL calls_an_array(float* out, int n) { out[0] = (n > 7 ? steps[0] : (Step)out)(Wide{}, 1).a; }
KERNEL calls_another_type(float* out, int n) {
  out[0] = (n > 7 ? steps[0] : (Step)other)(Wide{}, 1).a;
}
// The last label is number 1.
KERNEL jumps_by_a_table(float* out, int n) {
  asm volatile(
      "{ table: .branchtargets ZERO, ONE; brx.idx %1, table; ZERO: mov.f32 %0, 0f00000000; "
      "bra.uni END; ONE: mov.f32 %0, 0f3f800000; END: }"
      : "+f"(out[0])
      : "r"(n));
}
