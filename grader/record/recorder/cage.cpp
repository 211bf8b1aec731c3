// The cage of a child: it has its memory, a pipe for its reply, and no other way to anything.
//
// The filter of system calls (sandbox/seccomp.py) is in force before the dynamic loader looks at
// the submission's library, so constructors, resolvers of functions and a forged library meet it
// too. The loader opens the library by its name; the filter turns that call into a signal, and what
// it gets is a copy in memory which only this process has.
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>

#include "recorder.hpp"

namespace {

constexpr int FREE = 16;  // descriptors from here on are in nobody's way

// What the loader asks about its file: the first file that is opened is the library, and no other
// can be. Its state is asked for by name on some systems, by descriptor on others.
void answer_loader(int, siginfo_t* info, void* context) {
  auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  auto& answer = machine.gregs[REG_RAX];
  const auto third_argument = machine.gregs[REG_RDX];
#elif defined(__aarch64__)
  auto& answer = machine.regs[0];
  const auto third_argument = machine.regs[2];
#endif
  static bool opened = false;
  const int error = errno;
  if (info->si_syscall == SYS_newfstatat) {
    answer = syscall(SYS_fstat, LIBRARY_FD, third_argument) == 0 ? 0 : -errno;
  } else {
    answer = opened ? -EPERM : LIBRARY_FD;
    opened = true;
  }
  errno = error;
}

// Nothing is left open but the pipe and the library; what host code prints nobody sees.
bool give_descriptors(int reply, int nowhere) {
  const int library = memfd_create("host code", 0);
  if (!send_all(library, request.host_code.data(), request.host_code.size())) return false;
  lseek(library, 0, SEEK_SET);
  const int moved = fcntl(reply, F_DUPFD, FREE), own = fcntl(library, F_DUPFD, FREE);
  for (int shown : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (dup2(nowhere, shown) < 0) return false;
  if (dup2(moved, REPLY_FD) < 0 || dup2(own, LIBRARY_FD) < 0) return false;
  const int most = int(sysconf(_SC_OPEN_MAX));
  for (int fd = std::max(REPLY_FD, LIBRARY_FD) + 1; fd < most; ++fd) close(fd);
  return true;
}

bool filter_calls() {
  std::vector<sock_filter> filter = request.filter;
  for (sock_filter& line : filter)
    if (line.code == (BPF_JMP | BPF_JEQ | BPF_K) && line.k == OWN_PROCESS) line.k = getpid();
  const sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
  struct sigaction action = {};
  action.sa_sigaction = answer_loader;
  action.sa_flags = SA_SIGINFO;
  return sigaction(SIGSYS, &action, nullptr) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

void lock_down(int reply, int nowhere) {
  // Whoever ends like this was killed by somebody else: the machine's fault, not the student's.
  if (!give_descriptors(reply, nowhere)) raise(SIGKILL);
  if (!request.filter.empty() && !filter_calls()) raise(SIGKILL);
}
