#include <cstdio>
#include <cstdlib>
#include <cstring>
using u64 = unsigned long long;
static u64 next = 0x1000;
template <typename... T> static int said(const char* format, T... values) {
  FILE* log = std::fopen(std::getenv("DRIVER_LOG"), "a");
  std::fprintf(log, format, values...);
  std::fputc(10, log);
  std::fclose(log);
  return 0;
}
extern "C" {
int cuLaunchKernel(u64 f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void* stream, void** params, void** extra) {
  u64 first;
  std::memcpy(&first, params[0], 8);
  said("launch %llx %u %u %u %u %u %u %u %p %d %llx", f, gx, gy, gz, bx, by, bz, shared, stream,
       (int)((char*)params[1] - (char*)params[0]), first);
  return f == 0xbad ? 700 : 0;
}
struct Config {
  unsigned grid[3], block[3], shared;
  void* stream;
  unsigned* attributes;
  unsigned count;
};
int cuLaunchKernelEx(const Config* c, u64 f, void** params, void** extra) {
  const unsigned* a = c->attributes;
  said("attributes %u: %u %u %d", c->count, a[0], a[2], extra != nullptr);
  for (unsigned k = 1; k < c->count; ++k) said("and %u %u", a[18 * k], a[18 * k + 2]);
  return cuLaunchKernel(f, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1],
                        c->block[2], c->shared, c->stream, params, extra);
}
int cuTensorMapEncodeTiled(void* map, int type, unsigned rank, void* at, const u64* extents,
                           const u64* strides, const unsigned* box, const unsigned* steps,
                           int interleave, int swizzle, int promotion, int fill) {
  std::memset(map, 0xab, 128);
  return said("map %d %u %p %llu %llu %llu %u %u %u %d %d %d %d", type, rank, at, extents[0],
              extents[1], strides[0], box[0], box[1], steps[1], interleave, swizzle, promotion,
              fill);
}
int cuMemsetD8Async(u64 at, unsigned char v, size_t n, void*) {
  return said("memset %llx %d %zu", at, v, n);
}
int cuMemcpyDtoDAsync_v2(u64 to, u64 from, size_t n, void*) {
  return said("copy %llx %llx %zu", to, from, n);
}
int cuMemcpy2DAsync_v2(const size_t* c, void*) {
  return said("rows %zx %zx %zu %zu %zu %zu %d %d", c[11], c[4], c[14], c[15], c[6], c[13],
              int(c[2]), int(c[9]));
}
int cuMemcpyHtoDAsync_v2(u64 to, const char* from, size_t n, void*) {
  return said(n < 160 ? "write %llx %.3s %zu" : "write %llx %.3s %zu %02x", to, from, n,
              (unsigned char)from[n - 1]);
}
int cuMemAlloc_v2(u64* at, size_t n) {
  if (n > 1u << 30) return 2;
  return said("allocate %llx %zu", *at = next += 0x1000, n);
}
int cuMemAllocAsync(u64* at, size_t n, void*) {
  return said("allocate ordered %llx %zu", *at = next += 0x1000, n);
}
int cuMemFree_v2(u64 at) { return said("free %llx", at); }
int cuMemFreeAsync(u64 at, void*) { return said("free ordered %llx", at); }
int cuStreamSynchronize(void*) { return said("stream waits"); }
int cuCtxSynchronize() { return said("waits"); }
int cuEventRecord(void* event, void*) { return said("event %p", event); }
}
