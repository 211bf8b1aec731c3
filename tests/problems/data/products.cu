// Products that are wrong in one way each: A row-major, B and C column-major.
enum { RIGHT, TAIL, STRIDE, TWICE, ROW, PAIRED, SHIFTED, FRAGMENT, STAGE, MINUS, STARTED, BRANCH };

__global__ void product(const float* A, const float* B, float* C, int m, int n, int k, int how) {
  const int i = blockIdx.x * 16 + threadIdx.x, j = blockIdx.y * 8 + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = how == STARTED ? 0.5f : 0.0f;
  for (int p = 0; p < (how == TAIL ? k / 16 * 16 : k); p += how == STRIDE ? 2 : 1) {
    int row = how == ROW ? (i + 1) % m : i, of_a = p, of_b = p;
    if (how == PAIRED && (p | 7) < k) of_b = p ^ 4;
    if (how == SHIFTED) of_b = (p + 1) % k;
    if (how == FRAGMENT && (i | 8) < m && (p | 8) < k)  // bit 3 of both is exchanged
      row = i & ~8 | p & 8, of_a = p & ~8 | i & 8;
    if (how == STAGE && p >= 16 && p < 32) of_a = of_b = p - 16;
    const float term = A[row * k + of_a] * B[of_b + j * k];
    sum += how == MINUS ? -term : term;
    if (how == TWICE && p / 8 % 2) sum += term;
    if (how == BRANCH && term > 4.0f) sum += term;
  }
  C[i + j * m] = sum;
}

// A sum up to each element; exclusive: without it. Blocks of 64 elements begin anew: a wrong one.
__global__ void scan(const float* in, float* out, int n, int exclusive, int blocks) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return;
  float sum = 0.0f;
  for (int p = blocks ? i / 64 * 64 : 0; p < i + 1 - exclusive; ++p) sum += in[p];
  out[i] = sum;
}
