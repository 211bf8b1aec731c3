#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "sink.hpp"

namespace {

constexpr size_t MOST_FRAMES = 16;
constexpr cudaError_t ERRORS[] = {REFUSAL_ERRORS};

struct Program {
  uintptr_t base = 0, first = ~uintptr_t{0}, end = 0;  // addresses
};

// The first object is the program itself.
int look_at_program(dl_phdr_info* info, size_t, void* found) {
  Program& program = *static_cast<Program*>(found);
  program.base = info->dlpi_addr;
  for (int k = 0; k < info->dlpi_phnum; ++k) {
    const auto& part = info->dlpi_phdr[k];
    if (part.p_type != PT_LOAD) continue;
    program.first = std::min(program.first, uintptr_t(program.base + part.p_vaddr));
    program.end = std::max(program.end, uintptr_t(program.base + part.p_vaddr + part.p_memsz));
  }
  return 1;
}

const Program& program() {
  static const Program found = [] {
    Program seen;
    dl_iterate_phdr(look_at_program, &seen);
    return seen;
  }();
  return found;
}

bool unasked = false;  // host code has not asked for the error of a launch by <<<>>> that failed

void tell_failure(const Refused& refused, const Frames& frames) {
  const bool told = launch_site().empty(), known = in_device_range(refused.address);
  unasked |= !told;
  tell("{\"type\":\"refused\",\"refused\":" + json(refused) + ",\"frames\":" + frames_json(frames) +
       ",\"address\":" + number(known ? reinterpret_cast<uint64_t>(refused.address) : 0) +
       ",\"told\":" + truth(told) + "}");
}

void on_fault(int signal, siginfo_t* info, void*) {
  const std::lock_guard<std::recursive_mutex> alone(one_call);  // another thread may make a call
  if (in_device_range(info->si_addr))
    tell("{\"type\":\"fault\",\"address\":" + number(reinterpret_cast<uint64_t>(info->si_addr)) +
         ",\"frames\":" + frames_json(call_stack()) + "}");
  ::signal(signal, SIG_DFL);
  raise(signal);  // once more, to its end
}

}  // namespace

void catch_faults() {
  call_stack();  // the first one loads a library
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  for (const int each : {SIGSEGV, SIGBUS}) sigaction(each, &action, nullptr);
}

Frames call_stack() {
  Frames frames(64);
  frames.resize(size_t(backtrace(frames.data(), int(frames.size()))));
  return frames;
}

Frames site() { return launch_site().empty() ? call_stack() : launch_site(); }

std::string frames_json(const Frames& frames) {
  std::string found;
  size_t count = 0;
  for (void* frame : frames) {
    const auto address = reinterpret_cast<uintptr_t>(frame);
    if (address < program().first || address >= program().end) continue;
    if (++count > MOST_FRAMES) break;
    found += (found.empty() ? "" : ",") + number(address - program().base);
  }
  return "[" + found + "]";
}

void sink_refused(const Refused& refused, size_t) { tell_failure(refused, site()); }

void sink_asked() {
  if (unasked) tell("{\"type\":\"asked\"}");
  unasked = false;
}

void refuse(const Refused& refused) { refuse(refused, site()); }

void refuse(const Refused& refused, const Frames& frames) {
  tell_failure(refused, frames);
  launch_site().clear();
  throw CallFailed{failed(ERRORS[refused.refusal], refused)};
}
