// The course's part: it makes two random vectors, has them added, and prints the sums. The grader
// takes this file from the lab, whatever yours says.
//
//   vector-add N SEED
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "add.h"

int main(int count, char** words) {
  if (count != 3) {
    std::fprintf(stderr, "vector-add N SEED\n");
    return 2;
  }
  const int n = std::atoi(words[1]);
  std::mt19937 random(std::strtoul(words[2], nullptr, 10));
  std::uniform_real_distribution<float> values(-1, 1);
  std::vector<float> a(n), b(n), c(n);
  for (int i = 0; i < n; ++i) a[i] = values(random), b[i] = values(random);
  add_vectors(a.data(), b.data(), c.data(), n);
  for (const float each : c) std::printf("%.6f\n", each);
}
