// Device printf. The format is the program's, so it is taken apart here; nothing of it reaches a
// format function of the C library.
//
// Of CUDA's vprintf: the flags "-+ #0", width and precision (also *), the lengths h l ll and the
// conversions d i u o x X c s p e E f F g G a A. Anything else, %n and %1$s among it, is printed as
// it stands and takes no argument. Arguments lie one behind another, each aligned to its size: 8
// bytes for l, ll, p, s and every floating-point conversion, 4 for the rest.
#include <algorithm>
#include <cstdio>
#include <cmath>
#include <string_view>

#include "../checks/undefined.hpp"
#include "../machine/machine.hpp"
#include "../program/operations.hpp"

namespace sim {
namespace {

constexpr size_t PRINT_LIMIT = 64 << 10;  // bytes that all threads together may print
constexpr u32 MAX_WIDTH = 512, MAX_PRECISION = 100;
constexpr u64 MAX_STRING = 1024, MAX_FORMAT = 8192;

// Simulated memory from one address on, as far as it may be read.
struct Bytes {
  const u8* data = nullptr;
  u64 size = 0;
};

Bytes bytes_at(const Warp& w, int lane, u64 address) {
  const u64 window = address >> 56, offset = address & OFFSET_MASK;
  const auto from = [&](const u8* data, u64 size) {
    return offset < size ? Bytes{data + offset, size - offset} : Bytes{};
  };
  if (window == SHARED_WINDOW >> 56) return from(w.block->shared.data(), w.block->shared.size());
  if (window == LOCAL_WINDOW >> 56)
    return from(w.local.data() + u64(lane) * w.program->local_bytes, w.program->local_bytes);
  i64 index = -1;
  const Region* r = window ? nullptr : w.block->machine->find(address, index);
  if (!r || !within(address, 1, r->base, r->size)) return {};
  if (r->made_up) return {r->at(address), 1};
  return {r->at(address), r->size - (address - r->base)};
}

// The string at `address`, `most` bytes at most. What is no memory is a finding.
std::string_view string_at(Warp& w, int lane, u64 address, u64 most) {
  const Bytes bytes = bytes_at(w, lane, address);
  if (!bytes.data) {
    Event e = event_at(w, OUT_OF_BOUNDS, lane);
    e.address = address;
    e.size = 1;
    e.space = GLOBAL;
    w.block->machine->report(e);
    return {};
  }
  const auto* text = reinterpret_cast<const char*>(bytes.data);
  return {text, strnlen(text, std::min(bytes.size, most))};
}

// One conversion of a format: %[flags][width][.precision][length]kind.
struct Conversion {
  bool left = false, plus = false, space = false, alternate = false, zero = false;
  u32 width = 0;
  i64 precision = -1;  // none
  int longs = 0, shorts = 0;
  char kind = 0;
};

class Arguments {
 public:
  explicit Arguments(Bytes bytes) : bytes_(bytes) {}
  u64 next(u32 size) {
    at_ = (at_ + size - 1) / size * size;
    u64 value = 0;
    if (within(at_, size, bytes_.size)) std::memcpy(&value, bytes_.data + at_, size);
    at_ += size;
    return value;
  }

 private:
  Bytes bytes_;
  u64 at_ = 0;
};

// Reads a width or a precision at format[at]; false when there is none.
bool read_number(std::string_view format, size_t& at, Arguments& arguments, i64& number) {
  if (at < format.size() && format[at] == '*') {
    ++at;
    number = i32(arguments.next(4));
    return true;
  }
  const size_t start = at;
  for (number = 0; at < format.size() && format[at] >= '0' && format[at] <= '9'; ++at)
    number = std::min<i64>(number * 10 + (format[at] - '0'), MAX_WIDTH + MAX_PRECISION);
  return at > start;
}

// The conversion whose % stands before format[at]; `at` moves behind it. kind is 0 when it is none
// that CUDA has.
Conversion read_conversion(std::string_view format, size_t& at, Arguments& arguments) {
  Conversion c;
  for (; at < format.size(); ++at) {
    if (format[at] == '-') c.left = true;
    else if (format[at] == '+') c.plus = true;
    else if (format[at] == ' ') c.space = true;
    else if (format[at] == '#') c.alternate = true;
    else if (format[at] == '0') c.zero = true;
    else break;
  }
  i64 number = 0;
  if (read_number(format, at, arguments, number)) {
    if (number < 0) c.left = true;
    c.width = u32(std::min<i64>(number < 0 ? -number : number, MAX_WIDTH));
  }
  if (at < format.size() && format[at] == '.') {
    ++at;
    number = 0;
    read_number(format, at, arguments, number);
    c.precision = number < 0 ? -1 : std::min<i64>(number, MAX_WIDTH);
  }
  for (; at < format.size(); ++at) {
    if (format[at] == 'l') ++c.longs;
    else if (format[at] == 'h') ++c.shorts;
    else break;
  }
  if (at < format.size() &&
      std::string_view("diuoxXcspeEfFgGaA%").find(format[at]) != std::string_view::npos)
    c.kind = format[at++];
  return c;
}

void pad(std::string& out, const Conversion& c, std::string_view sign, std::string_view body,
         bool zeros) {
  const size_t length = sign.size() + body.size(),
               missing = c.width > length ? c.width - length : 0;
  if (!c.left && !zeros) out.append(missing, ' ');
  out += sign;
  if (!c.left && zeros) out.append(missing, '0');
  out += body;
  if (c.left) out.append(missing, ' ');
}

const char* sign_of(const Conversion& c, bool negative) {
  return negative ? "-" : c.plus ? "+" : c.space ? " " : "";
}

void print_integer(std::string& out, const Conversion& c, u64 value) {
  const bool is_signed = c.kind == 'd' || c.kind == 'i';
  const int bits = c.longs ? 64 : c.shorts > 1 ? 8 : c.shorts ? 16 : 32;
  value <<= 64 - bits;
  value = is_signed ? u64(i64(value) >> (64 - bits)) : value >> (64 - bits);
  const bool negative = is_signed && i64(value) < 0;
  if (negative) value = 0 - value;
  const u32 base = c.kind == 'o' ? 8 : c.kind == 'x' || c.kind == 'X' ? 16 : 10;
  std::string digits;
  for (u64 rest = value; rest; rest /= base)
    digits += (c.kind == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[rest % base];
  const size_t least = c.precision < 0 ? 1 : size_t(c.precision);
  if (digits.size() < least) digits.append(least - digits.size(), '0');
  if (c.alternate && base == 8 && (digits.empty() || digits.back() != '0')) digits += '0';
  std::reverse(digits.begin(), digits.end());
  std::string sign = is_signed ? sign_of(c, negative) : "";
  if (c.alternate && base == 16 && value) sign = c.kind == 'X' ? "0X" : "0x";
  pad(out, c, sign, digits, c.zero && c.precision < 0);
}

void print_float(std::string& out, const Conversion& c, u64 bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  const double size = std::fabs(value);
  const int precision = c.precision < 0 ? c.kind == 'a' || c.kind == 'A' ? -1 : 6
                                        : int(std::min<i64>(c.precision, MAX_PRECISION));
  char text[512];  // 309 digits of the largest number, the point, MAX_PRECISION digits behind it
  const auto write = [&](const char* plain, const char* alternate) {
    std::snprintf(text, sizeof text, c.alternate ? alternate : plain, precision, size);
  };
  switch (c.kind) {
    case 'e': write("%.*e", "%#.*e"); break;
    case 'E': write("%.*E", "%#.*E"); break;
    case 'f': write("%.*f", "%#.*f"); break;
    case 'F': write("%.*F", "%#.*F"); break;
    case 'g': write("%.*g", "%#.*g"); break;
    case 'G': write("%.*G", "%#.*G"); break;
    case 'a': write("%.*a", "%#.*a"); break;
    default: write("%.*A", "%#.*A");
  }
  std::string sign = sign_of(c, std::signbit(value));
  std::string_view body = text;
  if (std::isfinite(value) && (c.kind == 'a' || c.kind == 'A')) {
    sign += body.substr(0, 2);  // zeros go behind the 0x
    body.remove_prefix(2);
  }
  pad(out, c, sign, body, c.zero && std::isfinite(value));
}

std::string hexadecimal(u64 value) {
  std::string out;
  Conversion c;
  c.kind = 'x';
  c.longs = 1;
  print_integer(out, c, value);
  return "0x" + out;
}

std::string formatted(Warp& w, int lane, std::string_view format, Bytes bytes) {
  Arguments arguments(bytes);
  std::string out;
  for (size_t at = 0; at < format.size() && out.size() < PRINT_LIMIT;) {
    const size_t start = at++;
    if (format[start] != '%') {
      out += format[start];
      continue;
    }
    const Conversion c = read_conversion(format, at, arguments);
    switch (c.kind) {
      case 0: out += format.substr(start, at - start); break;
      case '%': out += '%'; break;
      case 'd':
      case 'i':
      case 'u':
      case 'o':
      case 'x':
      case 'X': print_integer(out, c, arguments.next(c.longs ? 8 : 4)); break;
      case 'c': {
        const char character = char(arguments.next(4));
        pad(out, c, "", {&character, character ? size_t{1} : 0}, false);
        break;
      }
      case 's': {
        const u64 address = arguments.next(8),
                  most = c.precision < 0 ? MAX_STRING : u64(c.precision);
        pad(out, c, "", address ? string_at(w, lane, address, most) : std::string_view("(null)"),
            false);
        break;
      }
      case 'p': pad(out, c, "", hexadecimal(arguments.next(8)), false); break;
      default: print_float(out, c, arguments.next(8));
    }
  }
  return out;
}

// Where in lane-private memory the addresses of the format and of the arguments lie, and the
// result.
struct PrintOperands { i32 format, arguments, result; };

Flow print(Warp& w, const Ins& i) {
  const auto o = operands<PrintOperands>(i);
  std::string& out = w.block->machine->printed;
  w.block->machine->unrepeatable = true;
  for (int l = 0; l < LANES; ++l) {
    if (!(w.exec >> l & 1)) continue;
    u8* own = w.local.data() + u64(l) * w.program->local_bytes;
    if (out.size() < PRINT_LIMIT) {
      u64 format, arguments;
      std::memcpy(&format, own + o.format, sizeof format);
      std::memcpy(&arguments, own + o.arguments, sizeof arguments);
      out += formatted(w, l, string_at(w, l, format, MAX_FORMAT), bytes_at(w, l, arguments));
      if (out.size() >= PRINT_LIMIT) {
        out.resize(PRINT_LIMIT);
        out += "\n[output cut]\n";
      }
    }
    std::memset(own + o.result, 0, 4);
    set_defined(w, own + o.result, 4);
  }
  return Flow::next;
}

}  // namespace

void add_print(Table& t) {
  add(t, "call.vprintf", print, ">iii", [](const Program& p, const Ins& i) {
    return std::all_of(i.o, i.o + 3,
                       [&](i32 at) { return at >= 0 && within(u64(at), 8, p.local_bytes); });
  });
}

}  // namespace sim
