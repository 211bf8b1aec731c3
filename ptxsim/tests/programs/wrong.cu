// One mistake for each name on the command line.
#include <signal.h>
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

__global__ void largest(int* y, int step) {
  int seen;
  const int mine = 1 + step * (blockIdx.x * 7 % 16);
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(y) : "memory");  // early
  if (seen < mine) asm volatile("st.relaxed.gpu.global.s32 [%0], %1;" ::"l"(y), "r"(mine));
}

// The last block that comes finds what all have written.
__global__ void last(int* parts, int* counter, int* sum) {
  parts[blockIdx.x] = blockIdx.x;
  __threadfence();
  if (atomicAdd(counter, 1) != gridDim.x - 1) return;
  __threadfence();
  int total = 0;
  for (int i = 0; i < gridDim.x; ++i) total += static_cast<volatile int*>(parts)[i];
  *sum = total;
}

__global__ void poll(volatile int* flag) {
  while (*flag == 0) {}  // waits for the host
}

int* leaked(int count) {
  int* made = nullptr;
  for (int i = 0; i < count; ++i) cudaMalloc(&made, 4096);
  return made;
}

int main(int, char** argv) {
  const std::string mistake = argv[1];
  int host[64] = {};
  int *d_a, *d_b;
  cudaMalloc(&d_a, 64), cudaMalloc(&d_b, sizeof host);  // MAIN
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
    d_a = nullptr;
  }
  if (mistake == "late") {
    cudaFree(d_b);  // late
    write<<<1, 32>>>(d_b, 32);
    d_b = nullptr;
  }
  if (mistake == "copied late") {
    cudaFree(d_b);
    cudaMemcpy(host, d_b, 4, cudaMemcpyDeviceToHost);  // copied late
    d_b = nullptr;
  }
  if (mistake == "unasked") {
    write<<<1, 2048>>>(d_b, 1);  // unasked
    cudaDeviceSynchronize();
    cudaFree(d_a), cudaFree(d_b);
    return 5;
  }
  if (mistake == "leak") leaked(1001), d_a = nullptr;
  if (mistake == "leak, and fails") exit(1);
  if (mistake == "reset") {
    cudaDeviceReset();
    return 0;
  }
  if (mistake == "early" || mistake == "early, and equal" || mistake == "last block") {
    cudaMemset(d_b, 0, sizeof host), cudaMemset(d_a, 0, 64);
    if (mistake[0] == 'e') largest<<<16, 1>>>(d_a, mistake == "early");
    else last<<<32, 1>>>(d_b, d_b + 40, d_a);
  }
  if (mistake == "waits for the host") {
    int* flag;
    cudaMallocHost(&flag, 4);
    *flag = 0;
    poll<<<1, 1>>>(flag);
    *flag = 1;
    cudaDeviceSynchronize();
    cudaFreeHost(flag);
  }
  if (mistake == "_exit") write<<<1, 32>>>(d_a, 32), _exit(0);
  if (mistake == "exec") write<<<1, 32>>>(d_a, 32), execl("/bin/true", "true", nullptr);
  if (mistake == "killed") write<<<1, 32>>>(d_a, 32), raise(SIGKILL);
  if (mistake == "crashes") write<<<1, 32>>>(d_a, 32), *static_cast<volatile int*>(nullptr) = 1;
  if (mistake == "crash alone") raise(SIGSEGV);
  if (mistake == "orphan") {
    write<<<1, 32>>>(d_a, 32);
    if (fork() == 0) {
      for (const int stream : {0, 1, 2}) close(stream);
      sleep(20);
    }
    _exit(0);
  }
  if (mistake == "child") return WEXITSTATUS(system("exit 4"));
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
    for (int file = 3; file < 1024; ++file)
      if (::write(file, "nonsense", 8) < 0) continue;
    sleep(20);  // it is ended before
  }
  printf("%s\n", cudaGetErrorName(cudaGetLastError()));
  cudaFree(d_a), cudaFree(d_b);
}
