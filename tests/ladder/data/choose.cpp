#include "estimate.cuh"
#include <cstdio>
int main() {
  int m, n, k;
  while (std::scanf("%d %d %d", &m, &n, &k) == 3) {
    const Choice c = Estimate{m, n, k, $DEVICE}.best();
    std::printf("%d %d %d %d\n", int(c.kernel), c.slices, c.whole, c.sharers);
  }
}
