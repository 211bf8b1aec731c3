// What launches found in memory, and what they left there, so that equal ones need not run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "region.hpp"

namespace sim {

struct Memo {
  struct Part {
    Region* region;
    std::vector<u8> found, left;  // the latter empty where nothing changed
    Zeroed<u8> found_defined, left_defined;
  };
  std::vector<Part> parts;  // all that the last such launch touched, if that was all it depends on
  bool whole = false;       // they hold bytes
  u64 misses = 0;           // times in a row that such a launch found something else
  u64 wait = 0;             // launches that keep nothing, since so many did in vain

  u64 bytes() const;
  void forget();
};

struct Memos {
  std::map<std::string, Memo> all;  // by what is asked of a launch
  Memo* next = nullptr;             // that of the next launch
  u64 bytes = 0;
};

}  // namespace sim
