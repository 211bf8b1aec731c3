// The product's checks on a GPU (on_gpu.py). Matrices have two strides: `down` from a row to the
// next, `across` from a column to the next.
// The inputs and a result are in one of three formats.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef unsigned long long u64;
typedef long long i64;

enum Format { FP32, FP16, BF16 };  // as on_gpu.py's _FORMATS

__device__ double at(const void* in, int format, u64 i) {
  if (format == FP16) return (double)__half2float(((const __half*)in)[i]);
  if (format == BF16) return (double)__bfloat162float(((const __nv_bfloat16*)in)[i]);
  return (double)((const float*)in)[i];
}

// One block per vector of `length` elements: its Euclidean norm. `outer`: from a vector to the
// next, `inner`: from an element to the next.
extern "C" __global__ void norms(const void* in, double* out, int format, int length, i64 outer,
                                 i64 inner) {
  __shared__ double part[128];
  double sum = 0;
  for (int p = threadIdx.x; p < length; p += 128) {
    double v = at(in, format, blockIdx.x * outer + p * inner);
    sum += v * v;
  }
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int step = 64; step; step >>= 1) {
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sqrt(part[0]);
}

// result: wrong elements, not finite, bits of the largest error;
// squares: sum of squared errors. A warp adds up before it touches them: 67 million atomics on one
// address take longer than the product. The scale of an element is the typical size of such a sum,
// or `fixed` if that is not 0, and `rounded` of what it should be.
extern "C" __global__ void compare(const void* got, const float* want, const double* rows,
                                   const double* columns, u64* result, double* squares, int format,
                                   int m, int n, i64 down, i64 across, double root_k, double fixed,
                                   double rounded, double tolerance) {
  u64 count = (u64)m * n, wrong = 0, bad = 0;
  double sum = 0, largest = 0;
  for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * (u64)blockDim.x) {
    u64 row = down == 1 ? i % m : i / n, column = down == 1 ? i / m : i % n;  // as memory runs
    double scale =
        fixed ? fixed : rows[row] * columns[column] / root_k + rounded * fabs((double)want[i]);
    double error = fabs(at(got, format, i) - (double)want[i]) / scale;
    if (!(error <= tolerance)) ++wrong;
    if (isfinite(error)) {
      sum += error * error;
      largest = fmax(largest, error);
    } else ++bad;
  }
  for (int apart = 16; apart; apart >>= 1) {
    wrong += __shfl_xor_sync(~0u, wrong, apart);
    bad += __shfl_xor_sync(~0u, bad, apart);
    sum += __shfl_xor_sync(~0u, sum, apart);
    largest = fmax(largest, __shfl_xor_sync(~0u, largest, apart));
  }
  if (threadIdx.x % 32) return;
  if (wrong) atomicAdd(&result[0], wrong);
  if (bad) atomicAdd(&result[1], bad);
  atomicMax(&result[2], (u64)__double_as_longlong(largest));
  atomicAdd(squares, sum);
}

// Freivalds: products with a vector of random signs, in FP64. The signs are those of `signs`.
// out[i] += sum over this block row's columns j of ± in[i*down + j*across]; out starts as zeros.
extern "C" __global__ void signed_columns(const void* in, const float* signs, double* out,
                                          int format, int length, int columns, i64 down,
                                          i64 across) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= length) return;
  double sum = 0;
  for (int j = blockIdx.y; j < columns; j += gridDim.y)
    sum += copysign(1.0, (double)signs[j]) * at(in, format, i * down + j * across);
  atomicAdd(&out[i], sum);
}

// One block per row of `length` elements: its product with a vector.
extern "C" __global__ void rows_times(const void* in, const double* vector, double* out, int format,
                                      int length, i64 down, i64 across) {
  __shared__ double part[128];
  double sum = 0;
  for (int p = threadIdx.x; p < length; p += 128)
    sum += at(in, format, blockIdx.x * down + p * across) * vector[p];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int step = 64; step; step >>= 1) {
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
