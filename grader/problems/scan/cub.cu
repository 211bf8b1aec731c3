// CUB's DeviceScan::InclusiveSum behind the C interface of cub.py.
#include <cub/device/device_scan.cuh>
#include <cub/version.cuh>

extern "C" {

int cub_version() { return CUB_VERSION; }

int cub_call(void* workspace, size_t* bytes, const int* in, int* out, int n, void* stream) {
  return cub::DeviceScan::InclusiveSum(workspace, *bytes, in, out, n, cudaStream_t(stream));
}

}  // extern "C"
