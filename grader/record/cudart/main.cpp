// recorder REQUEST: reads the request, runs one child per size, and writes to the result pipe, for
// each size, a line "LATE WAIT_STATUS BYTES" and the child's reply of so many bytes.
//
// The submission's code is only ever loaded by the children.
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>

#include "recorder.hpp"

Request request;

namespace {

constexpr size_t DEFAULT_SHARED = 48 << 10;  // bytes, static and dynamic, before any attribute
constexpr int PATIENCE_MS = 1000;

bool read_request(const char* path) {
  std::ifstream in(path);
  std::getline(in, request.library);
  in >> request.seconds >> request.wall_seconds >> std::ws;
  Target& t = request.target;
  std::getline(in, t.name);
  in >> t.major >> t.minor >> t.multiprocessors >> t.threads_per_multiprocessor >>
      t.blocks_per_multiprocessor >> t.registers_per_multiprocessor >> t.l2_bytes >> t.clock_khz >>
      t.memory_clock_khz >> t.bus_bits >> t.shared_per_multiprocessor >> t.shared_optin >>
      t.shared_reserved >> t.memory_bytes;
  size_t kernels = 0, vectors = 0, dims = 0, sizes = 0;
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
  in >> vectors >> dims;
  request.vectors.resize(vectors);
  for (auto& [name, bytes] : request.vectors) in >> name >> bytes;
  for (in >> sizes; sizes > 0 && in; --sizes) {
    Size s = {std::vector<size_t>(vectors), std::vector<int>(dims)};
    for (size_t& count : s.counts) in >> count;
    for (int& dim : s.dims) in >> dim;
    request.sizes.push_back(s);
  }
  return bool(in);
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
  Ended ended = {IN_TIME, 0, ""};
  static char chunk[1 << 16];
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
    const ssize_t n = read(fd, chunk, sizeof chunk);
    if (n <= 0 || ended.reply.size() + n > MAX_REPLY_BYTES) break;
    ended.reply.append(chunk, n);
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

bool send(int fd, const std::string& data) {
  for (size_t done = 0; done < data.size();) {
    const ssize_t n = write(fd, data.data() + done, data.size() - done);
    if (n <= 0) return false;
    done += n;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const char* fd_text = std::getenv("SGEMM_GRADER_RESULT_FD");
  if (argc != 2 || fd_text == nullptr || !read_request(argv[1])) return 2;
  const int result_fd = int(std::strtol(fd_text, nullptr, 10));
  prctl(PR_SET_DUMPABLE, 0);  // the children must not open this process's memory
  for (const Size& size : request.sizes) {
    int fds[2];
    if (pipe(fds) != 0) return 3;
    const pid_t child = fork();
    if (child < 0) return 3;
    if (child == 0) {
      close(result_fd);
      close(fds[0]);
      run_child(size, fds[1]);
    }
    close(fds[1]);
    const Ended ended = await(child, fds[0]);
    close(fds[0]);
    const std::string head = std::to_string(ended.late) + " " + std::to_string(ended.status) + " " +
                             std::to_string(ended.reply.size()) + "\n";
    if (!send(result_fd, head + ended.reply)) return 3;
    if (ended.late != IN_TIME) break;  // the others would take as long
  }
  return 0;
}
