// recorder: reads the files `request`, `filter` and `sizes` (one a line) of its folder, runs one
// child per size, and writes to the result pipe, for each size, a line "LATE WAIT_STATUS BYTES" and
// the child's reply of so many bytes.
//
// The submission's code is only ever loaded by the children. Each is forked from a supervisor of
// its own before that has learned anything, and the process that forks the supervisors learns
// nothing: no memory that a child has a copy of ever held another size, or what was recorded at
// one.
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "recorder.hpp"

Request request;
Gpu gpu;

namespace {

constexpr int PATIENCE_MS = 1000;
constexpr size_t MAX_LINE_BYTES = 512;
enum { NEXT, LAST, BROKEN };  // exit statuses of a supervisor

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool read_request() {
  std::ifstream in("request");
  in >> request.seconds >> request.wall_seconds >> std::ws;
  in >> gpu.target;
  size_t kernels = 0, vectors = 0;
  for (in >> kernels; kernels > 0 && in; --kernels) {
    Kernel k;
    size_t params = 0;
    in >> k.name >> k.registers >> k.shared_static >> k.max_threads >> k.cluster.x >> k.cluster.y >>
        k.cluster.z >> params;
    for (std::pair<size_t, size_t> param; params > 0 && in >> param.first >> param.second; --params)
      k.params.push_back(param);
    if (k.shared_static < DEFAULT_SHARED) k.shared_dynamic = DEFAULT_SHARED - k.shared_static;
    gpu.kernels[k.name] = k;
  }
  in >> vectors >> request.dims >> request.scalars;
  request.vectors.resize(vectors);
  for (auto& [name, bytes] : request.vectors) in >> name >> bytes;
  const std::string filter = contents("filter");
  request.filter.resize(filter.size() / sizeof(sock_filter));
  std::memcpy(request.filter.data(), filter.data(), request.filter.size() * sizeof(sock_filter));
  request.host_code = contents("library");
  return in && !request.host_code.empty();
}

// Erases the paths of the grader and of the submission: the arguments, the environment and the name
// of the program, which lie one behind the other. Of the environment a copy of two is left.
void forget_paths(char** argv) {
  const auto copy_of = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  const std::string path = copy_of("PATH"), language = copy_of("LANG");
  char* const program = reinterpret_cast<char*>(getauxval(AT_EXECFN));
  std::fill(argv[0], program + std::strlen(program), '\0');
  clearenv();
  setenv("PATH", path.c_str(), 1);
  setenv("LANG", language.c_str(), 1);
}

// The next line of a file that several processes read: no byte beyond it.
bool read_line(int file, char (&line)[MAX_LINE_BYTES]) {
  for (char& c : line) {
    if (read(file, &c, 1) != 1) return false;
    if (c == '\n') return true;
  }
  return false;
}

Size read_size(const char* line) {
  Size size = {std::vector<size_t>(request.vectors.size()), std::vector<int>(request.dims),
               std::vector<uint64_t>(request.scalars)};
  std::istringstream in(line);
  for (size_t& count : size.counts) in >> count;
  for (int& dim : size.dims) in >> dim;
  for (uint64_t& scalar : size.scalars) in >> scalar;
  return size;
}

enum Late { IN_TIME, TOOK_TOO_LONG, STARVED };

struct Ended {
  Late late;
  int status;
  std::string reply;
};

// The time that a child with one thread is charged after `wall` seconds: all of it, sleep included,
// except when the child was ready to run and others ran. If the kernel does not report how long
// that was, the child's CPU time.
double charged(pid_t child, double wall) {
  std::ifstream in("/proc/" + std::to_string(child) + "/schedstat");
  double running = 0, waiting = 0;  // nanoseconds
  if (in >> running >> waiting && running > 0) return wall - waiting * 1e-9;
  clockid_t clock;
  timespec used;
  if (clock_getcpuclockid(child, &clock) != 0 || clock_gettime(clock, &used) != 0) return wall;
  return double(used.tv_sec) + 1e-9 * double(used.tv_nsec);
}

Ended await(pid_t child, int fd) {
  using clock = std::chrono::steady_clock;
  const auto start = clock::now();
  Ended ended = {IN_TIME, 0, {}};
  char part[1 << 16];
  while (true) {
    const double wall = std::chrono::duration<double>(clock::now() - start).count();
    const double left = request.seconds - charged(child, wall);
    if (left <= 0) {
      ended.late = TOOK_TOO_LONG;
      break;
    }
    if (wall > request.wall_seconds) {
      ended.late = STARVED;
      break;
    }
    pollfd ready = {fd, POLLIN, 0};
    if (poll(&ready, 1, int(left * 1000) + 1) == 0) continue;
    const ssize_t n =
        read(fd, part, std::min<size_t>(sizeof part, MAX_REPLY_BYTES - ended.reply.size()));
    if (n <= 0) break;
    ended.reply.append(part, n);
  }
  // A child that ends closes its end of the pipe, and a moment later waitpid finds it. One that is
  // still alive has closed the pipe, writes too much or hangs; it is killed here, but its status
  // does not say SIGKILL, which means that another process killed it.
  for (int i = 0; i < PATIENCE_MS && ended.late == IN_TIME; ++i) {
    if (waitpid(child, &ended.status, WNOHANG) == child) return ended;
    usleep(1000);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ended.status = W_EXITCODE(1, 0);
  return ended;
}

}  // namespace

bool send_all(int fd, const char* data, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = write(fd, data + done, bytes - done);
    if (n <= 0) return false;
    done += n;
  }
  return true;
}

// A process for one size.
[[noreturn]] void supervise(int sizes, int result_fd, int nowhere) {
  char own[MAX_LINE_BYTES] = {};  // the size of the child
  if (!read_line(sizes, own)) _exit(own[0] == '\0' ? LAST : BROKEN);
  int fds[2];
  if (pipe(fds) != 0) _exit(BROKEN);
  const pid_t child = fork();
  if (child < 0) _exit(BROKEN);
  if (child == 0) {
    lock_down(fds[1], nowhere);
    run_child(read_size(own));
  }
  close(fds[1]);
  const Ended ended = await(child, fds[0]);
  const std::string head = std::to_string(ended.late) + " " + std::to_string(ended.status) + " " +
                           std::to_string(ended.reply.size()) + "\n";
  if (!send_all(result_fd, head.data(), head.size()) ||
      !send_all(result_fd, ended.reply.data(), ended.reply.size()))
    _exit(BROKEN);
  _exit(ended.late == IN_TIME ? NEXT : LAST);  // the others would take as long
}

int main(int, char** argv) {
  const char* fd_text = std::getenv("SGEMM_GRADER_RESULT_FD");
  if (fd_text == nullptr || !read_request()) return 2;
  const int result_fd = int(std::strtol(fd_text, nullptr, 10));
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  const int sizes = open("sizes", O_RDONLY | O_CLOEXEC);
  if (nowhere < 0 || sizes < 0) return 2;
  forget_paths(argv);
  // The first use of these reads files: a library, and what std::locale("") is made of.
  call_stack();
  [[maybe_unused]] const locale_t kept = newlocale(LC_ALL_MASK, "", nullptr);
  if (!own_all_memory()) {
    std::fputs("memory that is mapped from files cannot be replaced by copies\n", stderr);
    return 2;
  }
  prctl(PR_SET_DUMPABLE, 0);  // the children must not open the memory of these processes
  for (int status = 0; status == 0;) {
    const pid_t supervisor = fork();
    if (supervisor == 0) supervise(sizes, result_fd, nowhere);
    if (supervisor < 0 || waitpid(supervisor, &status, 0) < 0) return 3;
    if (status != 0) return WIFEXITED(status) && WEXITSTATUS(status) == LAST ? 0 : 3;
  }
}
