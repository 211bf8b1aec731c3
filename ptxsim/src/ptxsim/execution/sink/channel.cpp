#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "sink.hpp"

namespace {

int channel = -1;
pid_t owner = 0;  // the process that has the device

// Does it again where one of the program's signals came first.
template <class Work>
ssize_t unbroken(Work work) {
  ssize_t done;
  do done = work();
  while (done < 0 && errno == EINTR);
  return done;
}

// All of it in one call, where the channel takes it.
void send_parts(iovec* part, size_t parts) {
  msghdr message = {};
  while (parts) {
    message.msg_iov = part;
    message.msg_iovlen = parts;
    ssize_t sent = unbroken([&] { return sendmsg(channel, &message, MSG_NOSIGNAL); });
    if (sent < 0) give_up("ptxsim has ended");
    for (; parts && size_t(sent) >= part->iov_len; ++part, --parts) sent -= part->iov_len;
    if (!parts) return;
    part->iov_base = static_cast<char*>(part->iov_base) + sent;
    part->iov_len -= size_t(sent);
  }
}

void receive_bytes(void* data, size_t bytes) {
  auto next = static_cast<char*>(data);
  while (bytes) {
    const ssize_t got = unbroken([&] { return recv(channel, next, bytes, 0); });
    if (got <= 0) give_up("ptxsim has ended");
    next += got;
    bytes -= size_t(got);
  }
}

}  // namespace

int shared_memory = -1;  // the file that both processes map

void open_channel() {
  const char* given = std::getenv("PTXSIM_CHANNEL");
  if (!given) give_up("this program was built for ptxsim: run it as ptxsim exec PROGRAM");
  char* next = nullptr;
  channel = int(std::strtol(given, &next, 10));
  shared_memory = *next == ',' ? int(std::strtol(next + 1, nullptr, 10)) : -1;
  unsetenv("PTXSIM_CHANNEL");
  for (const int each : {channel, shared_memory}) fcntl(each, F_SETFD, FD_CLOEXEC);
  owner = getpid();
}

void give_up(const char* why) {
  std::fprintf(stderr, "ptxsim: %s\n", why);
  _exit(3);
}

void tell(const std::string& json, const void* blob, size_t bytes) {
  // A copy of the process has no device: what it asked for would reach the one of its parent.
  if (getpid() != owner)
    give_up("a process that was forked asks for CUDA, which it cannot have: use exec");
  const uint32_t head[2] = {uint32_t(json.size()), uint32_t(bytes)};
  if (bytes > MAX_BLOB_BYTES || json.size() > MAX_MESSAGE_BYTES)
    give_up("one call hands over more than ptxsim exec takes");
  iovec parts[] = {{const_cast<uint32_t*>(head), sizeof head},
                   {const_cast<char*>(json.data()), json.size()},
                   {const_cast<void*>(blob), bytes}};
  send_parts(parts, std::size(parts));
}

std::string ask(const std::string& json, const void* blob, size_t bytes) {
  tell(json, blob, bytes);
  uint32_t length;
  receive_bytes(&length, sizeof length);
  std::string answer(length, '\0');
  receive_bytes(answer.data(), length);
  return answer;
}
