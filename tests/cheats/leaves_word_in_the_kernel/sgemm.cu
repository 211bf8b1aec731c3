// Tries every way to leave word of its size where a later run could find it, and to find such word:
// the page cache (preadv2, mincore, cachestat, reads that take long, pages of libraries), access times,
// locks (flock, fcntl, OFD), leases, inotify, fanotify, sockets, shared memory of System V and
// POSIX, key rings, /proc, schedulers, control groups, and every other system call; while it is
// loaded, since a constructor may be let do more. It reports what it was allowed in an exception.
// Stopped by: a filter leaves it memory, clocks and its reply, and none of its memory is mapped
// from a file
// CPU: RE threw an exception: allowed: nothing
// GPU: RE
#include <stdexcept>

#include "asks.cuh"
#include "gemm.cuh"

static const std::string found = asks::everything();

template <>
void run_custom<float>(thrust::device_vector<float>& d_A, thrust::device_vector<float>& d_B,
                       thrust::device_vector<float>& d_C, const int m, const int n, const int k) {
  throw std::runtime_error("allowed: " + found);
}
