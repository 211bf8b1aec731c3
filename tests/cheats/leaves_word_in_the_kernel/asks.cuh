// Every way that we know by which one process could leave word for another in the kernel, and then
// every system call by its number.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string>

namespace asks {

inline std::string allowed;

inline void note(const std::string& name, bool is_allowed) {
  const bool is_new = (allowed + " ").find(" " + name + " ") == std::string::npos;
  if (is_allowed && is_new) allowed += " " + name;
}

// A call that fails for another reason than that it is forbidden has reached the kernel.
template <typename... Arguments>
long call(const char* name, long number, Arguments... arguments) {
  errno = 0;
  const long answer = syscall(number, arguments...);
  note(name, !(answer == -1 && (errno == EPERM || errno == ENOSYS)));
  return answer;
}

inline const char* const FILE_OF_ALL = "/usr/bin/env";
inline char room[4096];  // for answers

inline void about_the_page_cache() {
  char byte;
  iovec one = {&byte, 1};
  const int file = int(call("openat", SYS_openat, AT_FDCWD, FILE_OF_ALL, O_RDONLY));
  call("openat-as-the-loader", SYS_openat, AT_FDCWD, FILE_OF_ALL, O_RDONLY | O_CLOEXEC);
  call("openat2", 437, AT_FDCWD, FILE_OF_ALL, nullptr, 24);
  call("preadv2", SYS_preadv2, file, &one, 1, 0, 0, 8 /* RWF_NOWAIT */);
  call("pread", SYS_pread64, file, &byte, 1, 0);  // and how long it takes
  call("read", SYS_read, file, &byte, 1);
  call("mmap", SYS_mmap, nullptr, 4096, PROT_READ, MAP_PRIVATE, file, 0);
  call("cachestat", 451, file, nullptr, nullptr, 0);
  call("fadvise", SYS_fadvise64, file, 0, 0, POSIX_FADV_DONTNEED);
  call("readahead", SYS_readahead, file, 0, 4096);
  call("sendfile", SYS_sendfile, 1, file, nullptr, 1);
  call("splice", SYS_splice, file, nullptr, 1, nullptr, 1, 0);
  char* const page = reinterpret_cast<char*>(uintptr_t(&byte) & ~uintptr_t(4095));
  unsigned char present;
  call("mincore", SYS_mincore, page, 4096, &present);
  for (int advice : {MADV_WILLNEED, MADV_RANDOM, 20 /* COLD */, 21 /* PAGEOUT */, 22 /* POPULATE */})
    call("madvise", SYS_madvise, page, 4096, advice);
  call("mlock", SYS_mlock, page, 4096);
  call("msync", SYS_msync, page, 4096, MS_ASYNC);
  call("faults", SYS_getrusage, RUSAGE_SELF, nullptr);
  for (long number : {SYS_read, SYS_fstat, SYS_pread64}) {  // the library's own file is closed
    errno = 0;
    note("library", syscall(number, 4, room, 1, 0) != -1 || errno != EBADF);
  }
  // A page of a library, given back: it comes from its file again if it has one.
  char* const code = reinterpret_cast<char*>(uintptr_t(dlsym(RTLD_DEFAULT, "jnl")) & ~uintptr_t(4095));
  const volatile long* const words = reinterpret_cast<long*>(code);
  long before = 0, after = 0;
  for (int i = 0; i < 512; ++i) before |= words[i];
  madvise(code, 4096, MADV_DONTNEED);
  for (int i = 0; i < 512; ++i) after |= words[i];
  note("libraries-of-all", before == 0 || after != 0);
}

inline void about_files() {
  call("newfstatat", SYS_newfstatat, AT_FDCWD, FILE_OF_ALL, room, 0);  // its access time
  call("statx", SYS_statx, AT_FDCWD, FILE_OF_ALL, 0, STATX_ALL, room);
  for (int file : {0, 1, 2, 3}) {
    call("fstat", SYS_fstat, file, room);
    call("ioctl", SYS_ioctl, file, 0x541b /* FIONREAD */, room);
    call("flock", SYS_flock, file, LOCK_SH | LOCK_NB);
    struct flock lock = {};
    lock.l_type = F_RDLCK;
    for (int what : {F_GETLK, F_SETLK, F_OFD_GETLK, F_OFD_SETLK, F_SETLEASE, F_GETLEASE, F_NOTIFY,
                     F_GETFL, F_SETFL, F_GETPIPE_SZ, F_SETPIPE_SZ, F_ADD_SEALS, F_DUPFD})
      call("fcntl", SYS_fcntl, file, what, &lock);
  }
  call("faccessat", SYS_faccessat, AT_FDCWD, FILE_OF_ALL, R_OK);
  call("readlinkat", SYS_readlinkat, AT_FDCWD, "/proc/self/exe", room, sizeof room);
  call("utimensat", SYS_utimensat, AT_FDCWD, FILE_OF_ALL, nullptr, 0);
  call("statfs", SYS_statfs, "/usr", room);
  call("getcwd", SYS_getcwd, room, sizeof room);
  call("inotify_init1", SYS_inotify_init1, 0);
  call("fanotify_init", SYS_fanotify_init, 0, 0);
  call("name_to_handle_at", SYS_name_to_handle_at, AT_FDCWD, "/usr", room, room, 0);
  for (const char* name : {"/proc/self/maps", "/proc/stat", "/proc/1/cmdline", "/proc/locks",
                           "/proc/self/cgroup", "/sys/fs/cgroup/memory.pressure", "/dev/shm/note"})
    call(name, SYS_openat, AT_FDCWD, name, O_RDONLY);
}

inline void about_processes() {
  sockaddr_un address = {AF_UNIX, {}};
  std::strcpy(address.sun_path + 1, "word");
  call("socket", SYS_socket, AF_UNIX, SOCK_STREAM, 0);
  call("bind", SYS_bind, 3, &address, sizeof address);
  call("connect", SYS_connect, 3, &address, sizeof address);
  call("socketpair", SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, nullptr);
  call("shmget", SYS_shmget, 1, 4096, 01600);
  call("semget", SYS_semget, 1, 1, 01600);
  call("msgget", SYS_msgget, 1, 01600);
  call("mq_open", SYS_mq_open, "word", O_CREAT | O_RDWR, 0600, nullptr);
  call("memfd_create", SYS_memfd_create, "word", 0);
  call("pipe2", SYS_pipe2, nullptr, 0);
  call("keyctl", SYS_keyctl, 0, -3, 1);
  call("add_key", SYS_add_key, "user", "word", "x", 1, -4);
  call("request_key", SYS_request_key, "user", "word", nullptr, -4);
  call("sched_getaffinity", SYS_sched_getaffinity, 0, 128, nullptr);
  call("sched_setaffinity", SYS_sched_setaffinity, 0, 0, nullptr);
  call("sched_getscheduler", SYS_sched_getscheduler, 1);
  call("sched_yield", SYS_sched_yield);
  call("getpriority", SYS_getpriority, PRIO_PROCESS, 1);
  call("ioprio_get", SYS_ioprio_get, 1, 1);
  call("prlimit64", SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, nullptr);
  call("sysinfo", SYS_sysinfo, nullptr);
  call("times", SYS_times, nullptr);
  call("getppid", SYS_getppid);
  call("getpgid", SYS_getpgid, 1);
  call("prctl", SYS_prctl, 15 /* PR_SET_NAME */, "word");
  call("kill", SYS_kill, 1, 0);
  call("tgkill", SYS_tgkill, 1, 1, 0);
  call("sigkill", SYS_tgkill, getpid(), 1, SIGKILL);
  std::signal(SIGRTMIN, SIG_IGN);
  call("waiting-signals", SYS_tgkill, getpid(), gettid(), SIGRTMIN);
  call("pidfd_open", SYS_pidfd_open, 1, 0);
  call("landlock", 444, nullptr, 0, 1);
  timespec now;
  const int clock_of_1 = (~1 << 3) | 2;  // as clock_getcpuclockid makes it
  call("clock_gettime", SYS_clock_gettime, clock_of_1, &now);
  call("clock_nanosleep", SYS_clock_nanosleep, clock_of_1, 1, &now, nullptr);
  call("large-pages", SYS_mmap, nullptr, 1 << 21, PROT_READ,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, 4, 0);
}

// After the others, which would have found what an arbitrary call could do harm with.
inline void about_anything() {
  const long computing[] = {
      SYS_munmap, SYS_brk, SYS_mprotect, SYS_futex, SYS_rt_sigaction, SYS_rt_sigprocmask,
      SYS_rt_sigreturn, SYS_sigaltstack, SYS_restart_syscall, SYS_getpid, SYS_gettid, SYS_nanosleep,
      SYS_gettimeofday, SYS_getrandom, SYS_close, SYS_exit, SYS_exit_group,
#ifdef SYS_time
      SYS_time,
#endif
  };
  for (long number = 0; number < 700; ++number) {
    bool computes = false;
    for (long known : computing) computes |= number == known;
    // These two are a debugger's, and end a process that it has not prepared.
    computes |= number == 335 /* uretprobe */ || number == 336 /* uprobe */;
    if (!computes) call(std::to_string(number).c_str(), number, -1L, -1L, -1L, -1L, -1L, -1L);
  }
}

// "nothing", or the names of all that is not refused.
inline std::string everything() {
  about_the_page_cache();
  about_files();
  about_processes();
  if (allowed.empty()) about_anything();
  return allowed.empty() ? "nothing" : allowed;
}

}  // namespace asks
