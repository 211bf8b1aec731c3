// Replaces everything that the recorder has mapped from files by copies of its own.
//
// The page cache belongs to the whole machine: a process that reads, or runs, a page for the first
// time leaves it there, and another one can find out, if only by the time that a page takes. Copies
// in anonymous memory are present before the first instruction of a student's, and end with the
// process.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "recorder.hpp"

namespace {

constexpr size_t MOST = 1 << 16;  // bytes of /proc/self/maps

bool read_maps(char* text) {
  const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  size_t length = 0;
  ssize_t n = -1;
  while (file >= 0 && (n = read(file, text + length, MOST - 1 - length)) > 0) length += n;
  if (file >= 0) close(file);
  text[length] = 0;
  return n == 0 && length > 0 && length < MOST - 1;
}

// At the same address, in one step. The code that does this is among what is replaced, and so is
// the C library's data: between copying and replacing nothing may write, or allocate. Not memcpy,
// in whose place a sanitiser would look at what lies between variables.
[[gnu::no_sanitize("address", "undefined")]]
bool replace(uint64_t start, size_t bytes, int protection) {
  void* place = reinterpret_cast<void*>(start);
  constexpr int OWN = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;
  char* copy = static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, OWN, -1, 0));
  if (copy == MAP_FAILED) return false;
  const volatile uint64_t* const from = static_cast<uint64_t*>(place);
  for (size_t i = 0; protection & PROT_READ && i < bytes / sizeof *from; ++i)
    reinterpret_cast<uint64_t*>(copy)[i] = from[i];
  __builtin___clear_cache(copy, copy + bytes);
  if (mprotect(copy, bytes, protection) != 0) return false;
  return mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place;
}

// Returns how many mappings of files there were, or -1 if one cannot be replaced. A line of `maps`
// is "START-END PERMISSIONS OFFSET DEVICE INODE PATH"; memory of no file has the inode 0.
int replace_all(char* maps) {
  if (!read_maps(maps)) return -1;
  int found = 0;
  for (char* line = maps; *line != 0;) {
    char* at = line;
    const uint64_t start = strtoull(at, &at, 16), end = strtoull(at + 1, &at, 16);
    const char* permissions = at + 1;
    int protection = PROT_NONE;
    if (permissions[0] == 'r') protection |= PROT_READ;
    if (permissions[1] == 'w') protection |= PROT_WRITE;
    if (permissions[2] == 'x') protection |= PROT_EXEC;
    at += 6;                   // past "rwxp "
    strtoull(at, &at, 16);     // the offset
    at = strchr(at + 1, ' ');  // past the device
    if (at == nullptr) return -1;
    const bool of_a_file = strtoull(at, &at, 10) != 0;
    if (of_a_file && !replace(start, end - start, protection)) return -1;
    found += of_a_file;
    line = strchr(at, '\n');
    if (line == nullptr) return -1;
    ++line;
  }
  return found;
}

}  // namespace

// Whether nothing is mapped from a file any more. Call it with one thread.
bool own_all_memory() {
  static char maps[MOST];
  return replace_all(maps) > 0 && replace_all(maps) == 0;
}
