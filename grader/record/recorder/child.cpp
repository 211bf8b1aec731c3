#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <exception>

#include "recorder.hpp"

namespace {

size_t call = 1;  // of run_custom, the one that is recorded

// What the loader is asked for. Whatever the name, it gets this descriptor (cage.cpp); the name
// holds where the kernel has no filters, too.
constexpr char LIBRARY[] = "/proc/self/fd/4";
static_assert(LIBRARY_FD == 4);

using Entry = void (*)(void* const*, const size_t*, const int*, const void* const*);

void reply(const std::string& text) { send_all(REPLY_FD, text.data(), text.size()); }

// So that uninitialised bytes that host code passes on, such as the padding of a struct, are the
// same in every call. 0x7f7f7f7f is hardly ever the right value by chance, as 0 would be.
[[gnu::noinline]] void overwrite_stack() {
  unsigned char below[1 << 16];
  std::memset(below, 0x7f, sizeof below);
  asm volatile("" : : "r"(below) : "memory");
}

void on_signal(int number, siginfo_t* info, void*) {
  const Argument signal{"signal", strsignal(number)};
  if (number == SIGABRT) refuse({ABORTED, {}});
  if (number == SIGSEGV || number == SIGBUS) {
    if (is_managed(info->si_addr)) refuse({MANAGED_ACCESS, {}});
    if (in_device_range(info->si_addr)) refuse({DEVICE_POINTER, {signal}});
    if (info->si_addr == nullptr) refuse({NULL_POINTER, {signal}});
  }
  refuse({CRASHED, {signal}});
}

void catch_signals() {
  static char stack[1 << 16];
  const stack_t alternate = {stack, 0, sizeof stack};
  sigaltstack(&alternate, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    sigaction(number, &action, nullptr);
}

void on_exit() { refuse({EXITED, {}}); }

Entry load() {
  void* library = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    const std::string error = dlerror();
    const size_t name = error.find("undefined symbol: ");
    if (name != std::string::npos)
      refuse_call(error.substr(name + std::strlen("undefined symbol: ")));
    refuse({NOT_LOADED, {{"error", error}}});
  }
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "sgemm_grader_entry"));
  stub_unresolved(reinterpret_cast<void*>(entry));
  return entry;
}

}  // namespace

bool in_device_range(const void* address) {
  const uint64_t value = reinterpret_cast<uint64_t>(address);
  return value >= FIRST_ADDRESS - REACH && value - FIRST_ADDRESS + REACH < ARENA_BYTES;
}

Frames call_stack() {
  Frames frames(64);
  frames.resize(backtrace(frames.data(), int(frames.size())));
  return frames;
}

// 0 for frames that are ours or the system's.
static size_t offset_in_library(void* frame) {
  Dl_info info;
  if (!dladdr(frame, &info) || std::strcmp(LIBRARY, info.dli_fname) != 0) return 0;
  return static_cast<char*>(frame) - static_cast<char*>(info.dli_fbase);
}

static std::string offsets(const Frames& frames, size_t most) {
  std::string found;
  for (void* frame : frames) {
    const size_t offset = offset_in_library(frame);
    if (offset == 0) continue;
    found += (found.empty() ? "" : ",") + std::to_string(offset);
    if (--most == 0) break;
  }
  return found;
}

Frames site() { return launch_site().empty() ? call_stack() : launch_site(); }

// CUDA's headers wrap some functions once or twice, and those are called by the student's.
std::string call_site() { return offsets(site(), 4); }

void refuse(const Refused& refused) { refuse(refused, site()); }

void refuse(const Refused& refused, const Frames& frames) {
  reply("{\"refusal\":{\"refused\":" + json(refused) + ",\"after\":" + last_failure_json() +
        ",\"call\":" + std::to_string(call) + ",\"frames\":[" + offsets(frames, frames.size()) +
        "]}}");
  _exit(0);
}

void run_child(const Size& size) {
  catch_signals();
  std::atexit(on_exit);
  const std::vector<void*> vectors = plan_begin(size);
  std::vector<const void*> scalars(size.scalars.size());
  for (size_t i = 0; i < scalars.size(); ++i) scalars[i] = &size.scalars[i];
  try {
    const Entry entry = load();
    for (; call <= CALLS; ++call) {
      overwrite_stack();
      entry(vectors.data(), size.counts.data(), size.dims.data(), scalars.data());
      plan_end_call();
    }
  } catch (const std::exception& error) {
    refuse({THREW, {{"what", error.what()}}}, {});
  } catch (...) {
    refuse({THREW_OTHER, {}}, {});
  }
  reply(plan_json());
  _exit(0);
}
