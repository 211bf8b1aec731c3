// Minimum and maximum of floating-point numbers.
#pragma once

#include <cmath>

namespace sim {

// A number wins over NaN; -0 is less than +0.
template <class T> T least(T a, T b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
template <class T> T most(T a, T b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  return a > b || (a == b && !std::signbit(a)) ? a : b;
}

// As least and most, but NaN wins.
template <class T> T least_or_nan(T a, T b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : least(a, b);
}
template <class T> T most_or_nan(T a, T b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : most(a, b);
}

}  // namespace sim
