// CUB's DeviceHistogram::HistogramEven of ints behind the C interface of ../cub.py.
#include <cub/device/device_histogram.cuh>
#include <cub/version.cuh>

extern "C" {

int cub_version() { return CUB_VERSION; }

int cub_call(void* workspace, size_t* bytes, const int* keys, unsigned* counts, int n,
             void* stream) {
  return cub::DeviceHistogram::HistogramEven(workspace, *bytes, keys, counts, 4096 + 1, 0, 4096, n,
                                             cudaStream_t(stream));
}

}  // extern "C"
