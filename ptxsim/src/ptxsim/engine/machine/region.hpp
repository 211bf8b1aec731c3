// Global memory and its shadow.
#pragma once

#include <vector>

#include "epoch.hpp"
#include "zeroed.hpp"

namespace sim {

// Bytes of global memory.
struct Extent {
  u64 address;
  u32 bytes;
};

constexpr u32 LINE = 32;  // cells that share a record of reads

// A device allocation, or a __device__/__constant__ variable.
struct Region {
  u64 base, size;
  u8* data;
  // Whether `data` is a piece that stands for all of it: it reads as that everywhere, and no store
  // changes it.
  bool made_up = false;
  u8* at(u64 address) const {
    const u64 offset = address - base;
    return data + (made_up ? offset % 16 : offset);
  }
  bool all_defined;      // no byte was ever left unwritten
  bool watched = false;  // somebody watches one of its elements
  Zeroed<u8> defined;    // per cell, when not all_defined
  struct Stamp {
    u32 block;  // + 1; 0: nobody
    Epoch epoch;
    u32 pc;
    bool operator==(const Stamp&) const = default;
  };
  Zeroed<Stamp> stamps;       // per cell, last write in this launch; empty until written
  std::vector<Stamp> hidden;  // the plain write that atomics followed; empty until there is one
  // Reads of LINE cells in a row by one warp at one time; bit k of `cells` stands for the k-th.
  struct Reads {
    u32 block;  // + 1; 0: none
    Epoch epoch;
    u32 pc, cells;
  };
  // The latest reads, those of another warp of that block, and those of another block.
  struct Line { Reads last, before, elsewhere; };
  Zeroed<Line> lines;  // in this launch; empty until read
  // Per cell the first two lanes that read it, the same one twice if only one did; of a line's last
  // reads, if their pc has TOLD_APART.
  struct Lanes { u8 first, second; };
  Zeroed<Lanes> readers;
  bool copied = false;       // asynchronously to shared memory, by this launch
  bool touched = false;      // by this launch, perhaps
  bool read_unseen = false;  // by this launch, in a way that `lines` do not tell
  std::vector<u8> uses;      // per cell, Use of this launch; empty unless traced and used
  // Of malloc in a kernel: its memory, the bytes asked for, and who freed it; pc: ~0 in an earlier
  // launch; block: 0 while it is not freed. What is freed has no bytes.
  bool in_heap = false;
  std::vector<u8> own;
  u64 given = 0;
  Stamp freed{};
  std::vector<u8> in_flight;  // the same of launches that may still run; shorter where none
};

// What a launch did to a cell of global memory, as bits. streams.py has the same.
enum Use : u8 { READ = 1, WRITTEN = 2, READ_STRONGLY = 4, WRITTEN_STRONGLY = 8 };
// While a launch runs, what blocks do after their griddepcontrol.launch_dependents is so far left.
constexpr int AFTER_TRIGGER = 4;

}  // namespace sim
