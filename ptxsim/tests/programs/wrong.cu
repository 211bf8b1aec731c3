// One mistake for each name on the command line.
#include <sys/wait.h>
#include <unistd.h>

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

__global__ void write(int* out, int n) {
  if (threadIdx.x < n) out[threadIdx.x] = 1;  // overrun
}
__global__ void strange() { asm volatile("{.reg .b64 %p; alloca.u64 %p, 8;}"); }  // refused
__global__ void check(int n) { assert(n == 0); }                                  // assert

int main(int, char** argv) {
  const std::string mistake = argv[1];
  int host[64] = {};
  int *d_a, *d_b;
  cudaMalloc(&d_a, 64), cudaMalloc(&d_b, sizeof host);
  write<<<1, 64>>>(d_b, 32);
  if (mistake == "overrun") write<<<1, 32>>>(d_a, 32);
  if (mistake == "unwritten")
    cudaMemcpy(host, d_b, sizeof host, cudaMemcpyDeviceToHost);  // unwritten
  if (mistake == "outside") cudaMemcpy(d_a, host, sizeof host, cudaMemcpyHostToDevice);  // outside
  if (mistake == "dereference") host[0] = d_b[0];      // dereference
  if (mistake == "block") write<<<1, 2048>>>(d_b, 1);  // block
  if (mistake == "freed") {
    cudaFree(d_a);
    cudaFree(d_a);  // freed
  }
  if (mistake == "late") {
    cudaFree(d_b);
    write<<<1, 32>>>(d_b, 32);
  }
  if (mistake == "refused") strange<<<1, 1>>>();
  if (mistake == "assert") {
    check<<<1, 32>>>(3);
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  }
  if (mistake == "abort") {
    write<<<1, 32>>>(d_a, 32);
    abort();
  }
  if (mistake == "fork") {
    if (fork() == 0) cudaDeviceSynchronize(), cudaFree(d_a), exit(0);
    int status = 0;
    wait(&status);
    return WEXITSTATUS(status);
  }
  if (mistake == "channel") {
    for (int file = 3; file < 20; ++file)
      if (::write(file, "nonsense", 8) < 0) continue;
    pause();
  }
  printf("%s\n", cudaGetErrorName(cudaGetLastError()));
}
