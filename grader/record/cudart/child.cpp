#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <exception>

#include "recorder.hpp"

namespace {

int reply = -1;
size_t call = 1;  // of run_custom, the one that is recorded

using Entry = void (*)(void* const*, const size_t*, const int*);

void write_all(const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(reply, text.data() + done, text.size() - done);
    if (n <= 0) return;
    done += n;
  }
}

std::string in_later_call() {
  return call == 1 ? "" : ", in call " + std::to_string(call) + " of run_custom for one size";
}

// So that uninitialised bytes that host code passes on, such as the padding of a struct, are the
// same in every call. 0x7f7f7f7f is hardly ever the right value by chance, as 0 would be.
[[gnu::noinline]] void overwrite_stack() {
  unsigned char below[1 << 16];
  std::memset(below, 0x7f, sizeof below);
  asm volatile("" : : "r"(below) : "memory");
}

// Of files, host code needs what it was linked with, and it leaves none for the next size. In
// Landlock's sandbox the recorder may read /proc to watch its children; they may not. A kernel
// without Landlock refuses, and the sandbox remains.
void hide_files() {
  constexpr int create_ruleset = 444, add_rule = 445, restrict_self = 446, path_beneath = 1;
  constexpr uint64_t write_file = 1 << 1, read_file = 1 << 2, read_folder = 1 << 3;
  constexpr uint64_t make_or_remove = 0x1ff0;  // files and folders of any kind
  constexpr uint64_t shown_rights = read_file | read_folder;
  const uint64_t handled = shown_rights | write_file | make_or_remove;
  const int ruleset = int(syscall(create_ruleset, &handled, sizeof handled, 0));
  if (ruleset < 0) return;
  for (const char* shown : {"/usr", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/dev", "/tmp",
                            request.library.c_str()}) {
    struct __attribute__((packed)) {
      uint64_t allowed;
      int parent;
    } rule = {shown_rights, open(shown, O_PATH | O_CLOEXEC)};
    if (rule.parent < 0) continue;
    if (shown == request.library.c_str()) rule.allowed = read_file;
    if (std::strcmp(shown, "/dev") == 0) rule.allowed |= write_file;
    syscall(add_rule, ruleset, path_beneath, &rule, 0);
    close(rule.parent);
  }
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  syscall(restrict_self, ruleset, 0);
  close(ruleset);
}

// The host code needs no process, program or socket of its own. Where the kernel has no seccomp the
// sandbox's other limits remain.
void lock_down() {
#if defined(__x86_64__)
  constexpr unsigned machine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
  constexpr unsigned machine = AUDIT_ARCH_AARCH64;
#endif
  const unsigned denied[] = {
#ifdef SYS_fork
      SYS_fork, SYS_vfork,
#endif
      // other processes and programs
      SYS_clone, SYS_clone3, SYS_execve, SYS_execveat, SYS_kill, SYS_tkill, SYS_rt_sigqueueinfo,
      SYS_rt_tgsigqueueinfo, SYS_pidfd_open, SYS_pidfd_send_signal, SYS_pidfd_getfd, SYS_ptrace,
      SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, SYS_prlimit64, SYS_setrlimit,
      SYS_setpriority,
      // giving up the CPU, so that time passes that is not charged
      SYS_sched_yield, SYS_sched_setscheduler, SYS_sched_setparam, SYS_sched_setattr,
      SYS_sched_setaffinity, SYS_ioprio_set,
      // SIGKILL from the kernel, which would look as if another process had ended this one
      SYS_timer_create,
      // memory that the limit on memory does not count
      SYS_memfd_create, SYS_shmget, SYS_msgget, SYS_mq_open,
#ifdef SYS_memfd_secret
      SYS_memfd_secret,
#endif
      // the world outside
      SYS_socket, SYS_socketpair, SYS_io_uring_setup, SYS_mount, SYS_umount2, SYS_unshare,
      SYS_setns,
      // doors into the kernel
      SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_keyctl, SYS_add_key, SYS_request_key};
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, machine, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1),  // the x32 numbers
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
  const sock_filter refused = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1 /* EPERM */);
  for (const unsigned call : denied) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    filter.push_back(refused);
  }
  // A descriptor's signal may be any, too.
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 4));
  filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])));
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETSIG, 0, 1));
  filter.push_back(refused);
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  // raise() and abort() signal their own process, and only that can be signalled; SIGKILL means
  // that somebody else ended it.
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 6));
  filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])));
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, unsigned(getpid()), 1, 0));
  filter.push_back(refused);
  filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])));
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SIGKILL, 0, 1));
  filter.push_back(refused);
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

void on_signal(int number, siginfo_t* info, void*) {
  std::string message = "host code crashed with " + std::string(strsignal(number));
  if (number == SIGSEGV || number == SIGBUS) {
    if (is_managed(info->si_addr))
      refuse("FE",
             "managed memory cannot be read or written by host code here, since kernels run later; "
             "pass values as kernel parameters or copy them with cudaMemcpy");
    if (in_device_range(info->si_addr))
      message +=
          ": it dereferenced a device pointer; only a kernel may read or write device memory";
    else if (info->si_addr == nullptr) message += ": it dereferenced a null pointer";
  } else if (number == SIGABRT) {
    message = "host code aborted: a failed assertion or an uncaught exception";
  }
  refuse("RE", message + after_last_error());
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

void on_exit() { refuse("RE", "host code called exit()" + after_last_error()); }

Entry load() {
  void* library = dlopen(request.library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    const std::string error = dlerror();
    const size_t name = error.find("undefined symbol: ");
    if (name != std::string::npos)
      refuse_call(error.substr(name + std::strlen("undefined symbol: ")));
    refuse("FE", "the host code cannot be loaded: " + error);
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
  if (!dladdr(frame, &info) || request.library != info.dli_fname) return 0;
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

// CUDA's headers wrap some functions once or twice, and those are called by the student's.
std::string call_site() { return offsets(launch_site.empty() ? call_stack() : launch_site, 4); }

void refuse(const char* verdict, const std::string& message) {
  refuse(verdict, message, launch_site.empty() ? call_stack() : launch_site);
}

void refuse(const char* verdict, const std::string& message, const Frames& frames) {
  write_all("{\"refusal\":{\"verdict\":" + json_text(verdict) +
            ",\"message\":" + json_text(message + in_later_call()) + ",\"frames\":[" +
            offsets(frames, frames.size()) + "]}}");
  _exit(0);
}

void run_child(const Size& size, int reply_fd) {
  reply = reply_fd;
  hide_files();
  lock_down();
  call_stack();  // the first use loads a library and allocates, which a signal handler should not
  catch_signals();
  std::atexit(on_exit);
  const std::vector<void*> vectors = plan_begin(size);
  try {
    const Entry entry = load();
    for (; call <= CALLS; ++call) {
      overwrite_stack();
      entry(vectors.data(), size.counts.data(), size.dims.data());
      if (plan_launches() == 0)
        refuse(after_last_error().empty() ? "FE" : "RE",
               "run_custom launched no kernel" + after_last_error(), {});
      plan_end_call();
    }
  } catch (const std::exception& error) {
    refuse("RE", std::string("host code threw an exception: ") + error.what() + after_last_error(),
           {});
  } catch (...) {
    refuse("RE", "host code threw an exception" + after_last_error(), {});
  }
  write_all(plan_json());
  _exit(0);
}
