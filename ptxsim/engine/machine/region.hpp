// Global memory and its shadow.
#pragma once

#include <vector>

#include "../types.hpp"

namespace sim {

// A device allocation, or a __device__/__constant__ variable.
struct Region {
  u64 base, size;
  u8* data;
  bool all_defined;                      // no byte was ever left unwritten
  std::vector<u8> defined;               // per cell, when not all_defined
  struct Stamp { u32 block, who, pc; };  // block + 1; thread | clock << 10
  std::vector<Stamp> stamps;             // per cell, last write in this launch; empty until written
  // Reads of LINE cells in a row by one warp at one time; bit k of `cells` stands for the k-th.
  struct Reads { u32 block, who, pc, cells; };  // block + 1; 0: none
  struct Line { Reads last, elsewhere; };       // the latest reads, and those of another block
  std::vector<Line> lines;                      // in this launch; empty until read
  std::vector<u8> uses;       // per cell, Use of this launch; empty unless traced and used
  std::vector<u8> in_flight;  // the same of launches that may still run; shorter where none
};

// What a launch did to a cell of global memory, as bits. streams.py has the same.
enum Use : u8 { READ = 1, WRITTEN = 2, READ_STRONGLY = 4, WRITTEN_STRONGLY = 8 };
// While a launch runs, what blocks do after their griddepcontrol.launch_dependents is so far left.
constexpr int AFTER_TRIGGER = 4;

}  // namespace sim
