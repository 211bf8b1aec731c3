// launcher PARENT ABI FILTER [-r PATH | -w PATH | -d PATH | -f PATH]... -- PROGRAM [ARGUMENT]...
//
// Runs PROGRAM where no namespace can be made: shut in by Landlock (the rights of version ABI; none
// for 0) and by the system-call filter that the descriptor FILTER holds (none for -1), without
// capabilities. PROGRAM may read and execute below -r, write below -w, read and write devices -d,
// and read files, but list no folder, below -f.
//
// This process stays outside as the supervisor. When PROGRAM ends, when PARENT dies or on SIGTERM
// it kills everything that PROGRAM started, whatever session it fled to; then it ends as PROGRAM
// did.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

// As in linux/landlock.h, which may be older than the kernel.
constexpr int CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446, PATH_BENEATH = 1;
enum Right : uint64_t {
  EXECUTE = 1 << 0,
  WRITE_FILE = 1 << 1,
  READ_FILE = 1 << 2,
  READ_DIR = 1 << 3,
  REMOVE_DIR = 1 << 4,
  REMOVE_FILE = 1 << 5,
  MAKE_CHAR = 1 << 6,
  MAKE_DIR = 1 << 7,
  MAKE_REG = 1 << 8,
  MAKE_SOCK = 1 << 9,
  MAKE_FIFO = 1 << 10,
  MAKE_BLOCK = 1 << 11,
  MAKE_SYM = 1 << 12,
  REFER = 1 << 13,
  TRUNCATE = 1 << 14,
  IOCTL_DEV = 1 << 15,
};
constexpr uint64_t OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
constexpr uint64_t READ = EXECUTE | READ_FILE | READ_DIR;
constexpr uint64_t WRITE = WRITE_FILE | READ_FILE | READ_DIR | REMOVE_DIR | REMOVE_FILE | MAKE_DIR |
                           MAKE_REG | MAKE_FIFO | MAKE_SYM | REFER | TRUNCATE | IOCTL_DEV;
constexpr uint64_t EVERY_TCP = 3, EVERY_SCOPE = 3;  // bind, connect; abstract sockets, signals

struct Ruleset { uint64_t files, tcp, scopes; };
struct __attribute__((packed)) PathBeneath {
  uint64_t allowed;
  int32_t parent;
};

[[noreturn]] void fail(const char* what) {
  dprintf(2, "launcher: %s: %s\n", what, strerror(errno));
  _exit(127);
}

uint64_t rights_of(int abi) {
  const int bits = abi >= 5 ? 16 : abi >= 3 ? 15 : abi >= 2 ? 14 : 13;
  return (uint64_t(1) << bits) - 1;
}

void allow(int ruleset, const char* path, uint64_t rights) {
  const int parent = open(path, O_PATH | O_CLOEXEC);
  struct stat state;
  if (parent < 0 || fstat(parent, &state) != 0) fail(path);
  if (!S_ISDIR(state.st_mode)) rights &= OF_FILES;
  const PathBeneath rule = {rights, parent};
  if (syscall(ADD_RULE, ruleset, PATH_BENEATH, &rule, 0) != 0) fail(path);
  close(parent);
}

void shut_in(int abi, char** options) {
  const uint64_t handled = rights_of(abi);
  const Ruleset rules = {handled, EVERY_TCP, EVERY_SCOPE};
  const size_t known = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;  // bytes that this version reads
  const int ruleset = int(syscall(CREATE_RULESET, &rules, known, 0));
  if (ruleset < 0) fail("Landlock");
  for (; **options == '-' && strcmp(*options, "--") != 0; options += 2) {
    uint64_t rights = 0;
    switch ((*options)[1]) {
      case 'r': rights = READ; break;
      case 'w': rights = WRITE; break;
      case 'd': rights = READ_FILE | WRITE_FILE; break;
      case 'f': rights = READ_FILE; break;
      default: fail("an option");
    }
    allow(ruleset, options[1], rights & handled);
  }
  if (syscall(RESTRICT_SELF, ruleset, 0) != 0) fail("Landlock");
  close(ruleset);
}

void filter_calls(int descriptor) {
  static sock_filter lines[BPF_MAXINSNS];
  const ssize_t bytes = read(descriptor, lines, sizeof lines);
  if (bytes <= 0) fail("the filter of system calls");
  const sock_fprog program = {static_cast<unsigned short>(bytes / sizeof lines[0]), lines};
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) fail("seccomp");
  close(descriptor);
}

// Root's too: none of them is needed, and without them root is subject to permissions.
void drop_capabilities() {
  for (int capability = 0; prctl(PR_CAPBSET_DROP, capability) == 0; ++capability) continue;
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  struct {
    uint32_t version;
    int pid;
  } header = {0x20080522, 0};  // _LINUX_CAPABILITY_VERSION_3
  const uint32_t none[6] = {};
  if (syscall(SYS_capset, &header, none) != 0) fail("capset");
}

[[noreturn]] void become(pid_t supervisor, int abi, int filter, char** options, char** program) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != supervisor) _exit(127);
  // A group of its own, so that all of it can be killed at once without the supervisor.
  setpgid(0, 0);
  drop_capabilities();
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("no_new_privs");
  if (abi > 0) shut_in(abi, options);
  if (filter >= 0) filter_calls(filter);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvp(program[0], program);
  fail(program[0]);
}

// Kills the children of this process. It is the subreaper: what they leave become its children.
void kill_children() {
  DIR* processes = opendir("/proc");
  if (processes == nullptr) return;
  while (const dirent* entry = readdir(processes)) {
    const pid_t process = pid_t(strtol(entry->d_name, nullptr, 10));
    if (process <= 0) continue;
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    text[bytes > 0 ? bytes : 0] = 0;
    const char* behind_name = strrchr(text, ')');  // ") S 1234": a letter, and the parent
    if (behind_name != nullptr && strlen(behind_name) > 4 &&
        strtol(behind_name + 4, nullptr, 10) == getpid())
      kill(process, SIGKILL);
  }
  closedir(processes);
}

// Also reaps them, and returns how `program` ended.
int kill_all(pid_t program) {
  kill(-program, SIGKILL);
  // There is a child as long as the group or anything that fled from it lives.
  for (int status = 0, its = SIGKILL;;) {
    const pid_t ended = waitpid(-1, &status, WNOHANG);
    if (ended < 0) return its;
    if (ended == program) its = status;
    if (ended > 0) continue;
    kill_children();
    usleep(500);
  }
}

// Waits until `program` has ended or this process is told to end, and reaps all others. `program`
// itself is left unreaped, so that no other process group can have its number yet.
void supervise(pid_t program, const sigset_t& watched) {
  do {
    siginfo_t ended = {};
    while (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0) {
      if (ended.si_pid == program) return;
      waitpid(ended.si_pid, nullptr, 0);
      ended = {};
    }
  } while (sigwaitinfo(&watched, nullptr) != SIGTERM);
}

}  // namespace

int main(int argc, char** argv) {
  char** program = argv;
  while (*program != nullptr && strcmp(*program, "--") != 0) ++program;
  if (*program != nullptr) ++program;  // past "--"
  if (argc < 6 || *program == nullptr) {
    dprintf(2, "launcher: see its first comment\n");
    return 127;
  }
  const pid_t parent = pid_t(strtol(argv[1], nullptr, 10));
  const int abi = int(strtol(argv[2], nullptr, 10)), filter = int(strtol(argv[3], nullptr, 10));

  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGTERM);
  sigaddset(&watched, SIGCHLD);
  sigprocmask(SIG_BLOCK, &watched, nullptr);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) return 127;  // it died before
  prctl(PR_SET_CHILD_SUBREAPER, 1);

  const pid_t self = getpid(), child = fork();
  if (child < 0) fail("fork");
  if (child == 0) become(self, abi, filter, argv + 4, program);
  prctl(PR_SET_DUMPABLE, 0);
  for (int fd = 0; fd < 1024; ++fd) close(fd);  // whoever reads the pipes waits for the last writer

  supervise(child, watched);
  const int status = kill_all(child);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  signal(WTERMSIG(status), SIG_DFL);
  sigset_t its;
  sigemptyset(&its);
  sigaddset(&its, WTERMSIG(status));
  sigprocmask(SIG_UNBLOCK, &its, nullptr);
  raise(WTERMSIG(status));
  return 127;
}
