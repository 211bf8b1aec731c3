#include <cstdio>
extern "C" __global__ void k(float* a, float* b) {
  volatile int seven = 7;
  const char* between = "\n--\n";
  $BODY
  for (int i = 0; i < 100000; ++i) printf("%500d", i);
}
