// A program that prints what the lab expects, and tries what its argument names. Where an attack
// itself succeeds, it says so, which is another output.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>

__global__ void idle() {}

static void succeeded(const char* what) { std::printf("%s\n", what); }

// All but the first one, which is bubblewrap's and confined as the program is.
template <class Visit>
static void each_process(Visit visit) {
  DIR* processes = opendir("/proc");
  if (!processes) return;
  while (const dirent* entry = readdir(processes))
    if (const int process = std::atoi(entry->d_name); process > 1 && process != getpid())
      visit(process);
  closedir(processes);
}

// What the device's process says in the end.
static const char forged[] =
    "{\"remarks\":[],\"launches\":9,\"refused\":null,\"broken\":false}\n";

int main(int, char** words) {
  const std::string attack = words[1];
  if (attack == "memory") {
    each_process([](int process) {
      const std::string path = "/proc/" + std::to_string(process) + "/mem";
      if (open(path.c_str(), O_RDWR) >= 0) succeeded("opened memory");
    });
  } else if (attack == "trace") {
    if (ptrace(PTRACE_ATTACH, getppid(), 0, 0) == 0) succeeded("traces its parent");
    each_process([](int process) {
      if (ptrace(PTRACE_ATTACH, process, 0, 0) == 0) succeeded("traces");
    });
  } else if (attack == "signal") {
    kill(getppid(), SIGKILL);
    for (int process = 2; process < 100000; ++process)
      if (process != getpid()) kill(process, SIGKILL);
  } else if (attack == "descriptors") {
    for (int each = 3; each < 256; ++each) (void)!write(each, forged, sizeof forged - 1);
  } else if (attack == "reads") {
    for (const char* path : std::initializer_list<const char*>{words[2], words[3]})
      if (open(path, O_RDONLY) >= 0) succeeded("read a file of the lab");
  } else if (attack == "writes") {
    for (const char* path : std::initializer_list<const char*>{words[2], words[3]})
      if (open(path, O_WRONLY | O_CREAT, 0600) >= 0) succeeded("wrote a file");
  } else if (attack == "forks") {
    if (fork() == 0) {
      idle<<<1, 1>>>();
      _exit(0);
    }
    wait(nullptr);
  } else if (attack == "swells") {  // in memory that no limit of the kernel counts
    const size_t most = size_t{3} << 30;
    const int kind = MAP_SHARED | MAP_ANONYMOUS;
    void* const all = mmap(nullptr, most, PROT_READ | PROT_WRITE, kind, -1, 0);
    if (all != MAP_FAILED) std::memset(all, 1, most);
    sleep(1);
  } else if (attack == "links") {
    unlink("out.txt");
    (void)!symlink(words[2], "out.txt");
  } else if (attack == "idle") {
    idle<<<1, 1>>>();
  }
  std::puts("PASS");
}
