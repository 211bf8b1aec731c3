// recorder FOLDER: reads the folder's files `request`, `filter` and `sizes` (one a line), runs one
// child per size, and writes to the result pipe, for each size, a line "LATE WAIT_STATUS BYTES" and
// the child's reply of so many bytes.
//
// The submission's code is only ever loaded by the children, and each knows no size but its own.
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <sys/mman.h>
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

namespace {

constexpr int PATIENCE_MS = 1000;

constexpr size_t MAX_SIZES_BYTES = 1 << 20, MAX_LINE_BYTES = 512;

// What this process alone may know: all sizes, and what was recorded at them.
struct Secrets {
  char sizes[MAX_SIZES_BYTES];  // ends with a zero
  char head[64];
  char reply[MAX_REPLY_BYTES];
};
Secrets* secrets = nullptr;

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool read_request(const std::string& folder) {
  std::ifstream in(folder + "/request");
  std::getline(in, request.library);
  in >> request.seconds >> request.wall_seconds >> std::ws;
  Target& t = request.target;
  std::getline(in, t.name);
  in >> t.major >> t.minor >> t.multiprocessors >> t.threads_per_multiprocessor >>
      t.blocks_per_multiprocessor >> t.registers_per_multiprocessor >> t.l2_bytes >> t.clock_khz >>
      t.memory_clock_khz >> t.bus_bits >> t.shared_per_multiprocessor >> t.shared_optin >>
      t.shared_reserved >> t.memory_bytes;
  size_t kernels = 0, vectors = 0;
  for (in >> kernels; kernels > 0 && in; --kernels) {
    Kernel k;
    size_t params = 0;
    in >> k.name >> k.registers >> k.shared_static >> k.max_threads >> k.cluster.x >> k.cluster.y >>
        k.cluster.z >> params;
    for (std::pair<size_t, size_t> param; params > 0 && in >> param.first >> param.second; --params)
      k.params.push_back(param);
    if (k.shared_static < DEFAULT_SHARED) k.shared_dynamic = DEFAULT_SHARED - k.shared_static;
    request.kernels[k.name] = k;
  }
  in >> vectors >> request.dims;
  request.vectors.resize(vectors);
  for (auto& [name, bytes] : request.vectors) in >> name >> bytes;
  const std::string filter = contents(folder + "/filter");
  request.filter.resize(filter.size() / sizeof(sock_filter));
  std::memcpy(request.filter.data(), filter.data(), request.filter.size() * sizeof(sock_filter));
  request.host_code = contents(request.library);
  return in && !request.host_code.empty();
}

// Into memory that no child gets a copy of.
bool read_sizes(const std::string& folder) {
  void* const place =
      mmap(nullptr, sizeof(Secrets), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED || madvise(place, sizeof(Secrets), MADV_DONTFORK) != 0) return false;
  secrets = static_cast<Secrets*>(place);
  const int file = open((folder + "/sizes").c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t bytes = read(file, secrets->sizes, MAX_SIZES_BYTES - 1);
  close(file);
  return bytes > 0 && bytes < ssize_t(MAX_SIZES_BYTES - 1);
}

Size read_size(const char* line) {
  Size size = {std::vector<size_t>(request.vectors.size()), std::vector<int>(request.dims)};
  std::istringstream in(line);
  for (size_t& count : size.counts) in >> count;
  for (int& dim : size.dims) in >> dim;
  return size;
}

enum Late { IN_TIME, TOOK_TOO_LONG, STARVED };

struct Ended {
  Late late;
  int status;
  size_t bytes;  // of secrets->reply
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
  Ended ended = {IN_TIME, 0, 0};
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
    const ssize_t n = read(fd, secrets->reply + ended.bytes, MAX_REPLY_BYTES - ended.bytes);
    if (n <= 0) break;
    ended.bytes += n;
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

int main(int argc, char** argv) {
  const char* fd_text = std::getenv("SGEMM_GRADER_RESULT_FD");
  if (argc != 2 || fd_text == nullptr || !read_request(argv[1]) || !read_sizes(argv[1])) return 2;
  const int result_fd = int(std::strtol(fd_text, nullptr, 10));
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere < 0) return 2;
  // The first use of these reads files: a library, and what std::locale("") is made of.
  call_stack();
  [[maybe_unused]] const locale_t kept = newlocale(LC_ALL_MASK, "", nullptr);
  if (!own_all_memory()) {
    std::fputs("memory that is mapped from files cannot be replaced by copies\n", stderr);
    return 2;
  }
  prctl(PR_SET_DUMPABLE, 0);        // the children must not open this process's memory
  static char own[MAX_LINE_BYTES];  // the size of the child
  for (const char *line = secrets->sizes, *end; (end = std::strchr(line, '\n')); line = end + 1) {
    if (size_t(end - line) >= sizeof own) return 2;
    std::fill(std::copy(line, end, own), std::end(own), '\0');
    int fds[2];
    if (pipe(fds) != 0) return 3;
    const pid_t child = fork();
    if (child < 0) return 3;
    if (child == 0) {
      close(result_fd);
      close(fds[0]);
      lock_down(fds[1], nowhere);
      run_child(read_size(own));
    }
    close(fds[1]);
    const Ended ended = await(child, fds[0]);
    close(fds[0]);
    const int head = std::snprintf(secrets->head, sizeof secrets->head, "%d %d %zu\n",
                                   int(ended.late), ended.status, ended.bytes);
    if (!send_all(result_fd, secrets->head, head) ||
        !send_all(result_fd, secrets->reply, ended.bytes))
      return 3;
    if (ended.late != IN_TIME) break;  // the others would take as long
  }
  return 0;
}
