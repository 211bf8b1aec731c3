__global__ void greedy(int* C) {
  volatile int own[(1 << 17) - 256];
  for (int i = 0; i < 64; ++i) own[i * 1021] = i;
  C[0] = own[threadIdx.x];
}
