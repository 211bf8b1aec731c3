// nvcc keeps each union in registers of 32 bits, which hold what the last iteration left.
union Value {
  unsigned char bytes[8];
  unsigned short halves[4];
};
extern "C" __global__ void k(const unsigned char* a, const int* n, unsigned* b) {
  Value value;
  unsigned sum = 0;
#pragma unroll 1
  for (int i = 0; i < n[0]; ++i) {
    value.bytes[0] = a[i];
    value.halves[0] = a[i + 1] * 134;
    value.halves[2] = a[i + 2] * 67;
    sum += value.halves[0];
    value.halves[3] = a[i + 3] * 31;
    value.bytes[3] = a[i + 4];
    value.halves[3] = a[i + 5] * 151;
    sum += value.halves[2];
    value.bytes[4] = a[i + 6];
    $FILLS
    for (int j = 0; j < 4; ++j) sum = sum * 3 + value.halves[j];
  }
  b[threadIdx.x] = sum;
}
