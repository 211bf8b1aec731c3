// Lines made longer by zeros, so that each begins at a multiple of 16 bytes.
#pragma once

#include "element.cuh"

constexpr int LINE_UNIT = 8;  // elements: 16 bytes

// A thread fills 16 bytes. Neighbours read neighbouring elements, which the L1 keeps.
__global__ void pad(const Element* from, Element* to, int lines, int length, int padded) {
  const int units = padded / LINE_UNIT;
  const size_t unit = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  if (unit >= size_t(lines) * units) return;
  const size_t line = unit / units;
  const int first = int(unit % units) * LINE_UNIT;
  alignas(16) Element piece[LINE_UNIT];
#pragma unroll
  for (int e = 0; e < LINE_UNIT; ++e)
    piece[e] = first + e < length ? from[line * length + first + e] : Element(0.0f);
  *reinterpret_cast<int4*>(to + unit * LINE_UNIT) = *reinterpret_cast<const int4*>(piece);
}

// `from`, or its copy with lines of `padded` elements at `to`.
inline const Element* padded_lines(const Element* from, Element* to, int lines, int length,
                                   int padded) {
  if (length == padded) return from;
  const size_t units = size_t(lines) * padded / LINE_UNIT;
  pad<<<unsigned((units + 255) / 256), 256>>>(from, to, lines, length, padded);
  return to;
}
