// CUB's DeviceHistogram::HistogramEven of bytes behind the C interface of ../cub.py.
#include <cub/device/device_histogram.cuh>
#include <cub/version.cuh>

extern "C" {

int cub_version() { return CUB_VERSION; }

int cub_call(void* workspace, size_t* bytes, const unsigned char* keys, unsigned* counts, int n,
             void* stream) {
  return cub::DeviceHistogram::HistogramEven(workspace, *bytes, keys, counts, 256 + 1, 0, 256, n,
                                             cudaStream_t(stream));
}

}  // extern "C"
