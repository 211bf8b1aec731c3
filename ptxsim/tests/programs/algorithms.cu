// Thrust and CUB, whose kernels are as others are: nothing may be found, and all of it is right.
#include <thrust/device_vector.h>
#include <thrust/extrema.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

#include <cstdio>
#include <cub/cub.cuh>
#include <vector>

struct Square {
  __host__ __device__ int operator()(int x) const { return x * x; }
};

int failures = 0;
void expect(const char* what, long found, long wanted) {
  if (found == wanted) return;
  std::printf("%s: %ld instead of %ld\n", what, found, wanted);
  ++failures;
}

template <class Work>
void with_storage(Work work) {
  void* storage = nullptr;
  size_t bytes = 0;
  work(storage, bytes);
  cudaMalloc(&storage, bytes);
  work(storage, bytes);
  cudaFree(storage);
}

int main() {
  const int n = 6000;
  std::vector<int> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = int(i * 7919l % n);
  const thrust::host_vector<int> host(in.begin(), in.end());
  thrust::device_vector<int> numbers = host, squares(n);
  thrust::transform(numbers.begin(), numbers.end(), squares.begin(), Square());
  expect("transform", squares[3], long(in[3]) * in[3]);
  expect("reduce", thrust::reduce(numbers.begin(), numbers.end()), n * (n - 1l) / 2);
  expect("max_element", *thrust::max_element(squares.begin(), squares.end()), (n - 1) * (n - 1));
  thrust::sort(numbers.begin(), numbers.end());
  expect("sort", numbers[777], 777);
  expect("unique", thrust::unique(numbers.begin(), numbers.end()) - numbers.begin(), n);
  thrust::inclusive_scan(numbers.begin(), numbers.end(), numbers.begin());
  expect("inclusive_scan", numbers[100], 5050);

  int *d_in, *d_out, *d_sum, sum = 0;
  cudaMalloc(&d_in, n * sizeof(int));
  cudaMalloc(&d_out, n * sizeof(int));
  cudaMalloc(&d_sum, sizeof(int));
  cudaMemcpy(d_in, in.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  with_storage([&](void* at, size_t& bytes) { cub::DeviceReduce::Sum(at, bytes, d_in, d_sum, n); });
  cudaMemcpy(&sum, d_sum, sizeof sum, cudaMemcpyDeviceToHost);
  expect("DeviceReduce", sum, n * (n - 1l) / 2);
  with_storage(
      [&](void* at, size_t& bytes) { cub::DeviceRadixSort::SortKeys(at, bytes, d_in, d_out, n); });
  with_storage(
      [&](void* at, size_t& bytes) { cub::DeviceScan::ExclusiveSum(at, bytes, d_out, d_in, n); });
  cudaMemcpy(out.data(), d_in, n * sizeof(int), cudaMemcpyDeviceToHost);
  expect("DeviceRadixSort and DeviceScan", out[101], 5050);
  with_storage([&](void* at, size_t& bytes) {
    cub::DeviceSelect::Unique(at, bytes, d_out, d_in, d_sum, n);
  });
  cudaMemcpy(&sum, d_sum, sizeof sum, cudaMemcpyDeviceToHost);
  expect("DeviceSelect", sum, n);
  for (int* each : {d_in, d_out, d_sum}) cudaFree(each);
  std::puts(failures ? "wrong" : "right");
}
