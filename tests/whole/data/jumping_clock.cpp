#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
// The wall clock jumps by up to a month, to and fro; clocks that only count go on.
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  static auto real = (int (*)(clockid_t, timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int status = real(clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += rand() % 5000000 - 2500000;
  return status;
}
