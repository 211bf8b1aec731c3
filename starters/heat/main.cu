// The course's part: a random plate, whose edges keep their temperature, and what becomes of it.
// The grader takes this file from the lab, whatever yours says.
//
//   heat ROWS COLUMNS STEPS SEED     prints the total, and writes the plate to plate.txt
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "heat.h"

int main(int count, char** words) {
  if (count != 5) {
    std::fprintf(stderr, "heat ROWS COLUMNS STEPS SEED\n");
    return 2;
  }
  const int rows = std::atoi(words[1]), columns = std::atoi(words[2]), steps = std::atoi(words[3]);
  std::mt19937 random(std::strtoul(words[4], nullptr, 10));
  std::uniform_real_distribution<float> values(0, 100);
  std::vector<float> plate(size_t(rows) * columns);
  for (float& each : plate) each = values(random);
  heat(plate.data(), rows, columns, steps);
  double total = 0;
  for (const float each : plate) total += each;
  std::printf("total %.3f\n", total);
  std::FILE* file = std::fopen("plate.txt", "w");
  for (size_t i = 0; i < plate.size(); ++i)
    std::fprintf(file, "%.4f%c", plate[i], (i + 1) % columns ? ' ' : '\n');
  std::fclose(file);
}
