// Loaded before the recorder's own libraries: when a child is about to be shut in, it appends its
// memory to the file $DUMP. Its number and its parent's, the place where the kernel tells it its
// CPU (struct rseq) and a zero, then of each mapping the start and the length in bytes, as integers
// of 64 bits, and what it holds; two zeros end it.
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

extern const ptrdiff_t __rseq_offset __attribute__((weak));  // since glibc 2.35

namespace {

char file[256], maps[1 << 16];

// The programs that start the recorder load this, too.
__attribute__((constructor)) void remember() {
  const char* const path = getenv("DUMP");
  if (path != nullptr && strncmp(program_invocation_short_name, "recorder", 8) == 0)
    snprintf(file, sizeof file, "%s", path);
}

void dump() {
  const int source = open("/proc/self/maps", O_RDONLY), target = open(file, O_WRONLY | O_APPEND);
  size_t length = 0;
  for (ssize_t n; (n = read(source, maps + length, sizeof maps - 1 - length)) > 0;) length += n;
  const uint64_t thread = reinterpret_cast<uint64_t>(__builtin_thread_pointer());
  const uint64_t rseq = &__rseq_offset == nullptr ? 0 : thread + __rseq_offset;
  const uint64_t who[4] = {uint64_t(getpid()), uint64_t(getppid()), rseq, 0};
  bool written = write(target, who, sizeof who) == sizeof who;
  for (char *line = maps, *at; *line != 0; line = strchr(line, '\n') + 1) {
    const uint64_t start = strtoull(line, &at, 16), end = strtoull(at + 1, &at, 16);
    const uint64_t span[2] = {start, end - start};
    const char* const name = strchr(line, '[');
    const bool of_kernel = name != nullptr && name < strchr(line, '\n') && name[1] == 'v';
    if (at[1] != 'r' || of_kernel) continue;
    written &= write(target, span, sizeof span) == sizeof span;
    for (uint64_t done = start; done < end && written;) {
      const ssize_t n = write(target, reinterpret_cast<void*>(done), end - done);
      written = n > 0;
      done += n;
    }
  }
  const uint64_t none[2] = {};
  written &= write(target, none, sizeof none) == sizeof none;
  if (!written) abort();
  close(source);
  close(target);
}

}  // namespace

extern "C" int prctl(int option, ...) {
  va_list rest;
  va_start(rest, option);
  const unsigned long first = va_arg(rest, unsigned long), second = va_arg(rest, unsigned long);
  va_end(rest);
  if (option == PR_SET_NO_NEW_PRIVS && file[0] != 0) dump();
  return int(syscall(SYS_prctl, option, first, second, 0, 0));
}
