// What a program can do to its device, on purpose or by mistake. One case for each name.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

struct Node {
  Node* next;
  int value;
};

// Follows what lies in memory, whatever it is.
__global__ void walk(Node* first, int* sum, int n) {
  Node* node = first + threadIdx.x;
  for (int i = 0; i < n && node; ++i) {
    atomicAdd(sum, node->value);
    node->value += i;
    node = node->next;
  }
}

__global__ void one(int* x) { *x = 1; }

// Writes everywhere in the memory that this process shares with its device.
void scribble(const std::atomic<bool>& ends) {
  std::vector<std::pair<char*, char*>> parts;
  FILE* const maps = fopen("/proc/self/maps", "r");
  char line[512];
  while (fgets(line, sizeof line, maps)) {
    unsigned long from, to;
    if (strstr(line, "device-memory") && sscanf(line, "%lx-%lx", &from, &to) == 2)
      parts.push_back({(char*)from, (char*)to});
  }
  fclose(maps);
  for (const auto& [from, to] : parts) mprotect(from, to - from, PROT_READ | PROT_WRITE);
  std::mt19937_64 drawn(1);
  while (!ends)
    for (const auto& [from, to] : parts) {
      const size_t reach = std::min<size_t>(to - from, 4 << 20), at = drawn() % (reach - 8) & ~7ull;
      const unsigned long word = drawn();
      memcpy(from + at, &word, drawn() % 8 + 1);
      if (drawn() % 1000 == 0) madvise(from, 4096, MADV_REMOVE);
    }
}

int main(int, char** argv) {
  const std::string name = argv[1];
  if (name == "scribbles") {
    std::atomic<bool> ends{false};
    Node *device, *pinned;
    int* sum;
    cudaMalloc(&device, 64 * sizeof(Node)), cudaMallocHost(&pinned, 64 * sizeof(Node));
    cudaMalloc(&sum, 4);
    std::thread other(scribble, std::cref(ends));
    for (int i = 0; i < 15; ++i) {
      for (Node* nodes : {device, pinned}) {
        for (int k = 0; k < 64; ++k) {
          const Node node{nodes + (k + 1) % 64, k};
          cudaMemcpy(nodes + k, &node, sizeof node, cudaMemcpyHostToDevice);
        }
        cudaMemset(sum, 0, 4);
        walk<<<1, 32>>>(nodes, sum, 200);
      }
    }
    ends = true;
    other.join();
    puts("wrote");
  }
  if (name == "allocates often") {
    std::vector<int*> all(20'000);
    for (int*& each : all) cudaMalloc(&each, 64);
    one<<<1, 1>>>(all[7'777]);
    for (int* each : all) cudaFree(each);
    puts(cudaGetErrorName(cudaDeviceSynchronize()));
  }
  if (name == "allocates and frees") {
    for (int i = 0; i < 20'000; ++i) {
      int* made;
      cudaMalloc(&made, 1 << 20);
      if (i % 1000 == 0) one<<<1, 1>>>(made);
      cudaFree(made);
    }
    puts(cudaGetErrorName(cudaDeviceSynchronize()));
  }
  if (name == "allocates much") {
    int *most, *part;
    cudaMalloc(&most, 36ull << 30), cudaMalloc(&part, 4);
    one<<<1, 1>>>(part);
    puts(cudaGetErrorName(cudaDeviceSynchronize()));
    cudaFree(most), cudaFree(part);
  }
  if (name == "leaves a child") {
    one<<<1, 1>>>(nullptr);
    if (fork() == 0) sleep(60);
    _exit(0);
  }
  if (name == "starts again") {
    one<<<1, 1>>>(nullptr);
    execl("/proc/self/exe", argv[0], "nothing", nullptr);
  }
}
