extern "C" __global__ void kernel_$SEED(const long long* in, const long long*, long long* out, int count) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= count) return;
  in += VALUES * t, out += VALUES * t;
  CALL(fragment_$SEED, in, out)
}
