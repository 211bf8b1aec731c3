// setp.
#include "lanewise.hpp"

namespace sim {
namespace {

template <class T> struct Comparisons { const char *eq, *ne, *lt, *le, *gt, *ge; };
template <class T> void integer_comparisons(Table& t, const Comparisons<T>& n) {
  lanewise_on<T>(t, n.eq, [](T a, T b) { return a == b; });
  lanewise_on<T>(t, n.ne, [](T a, T b) { return a != b; });
  lanewise_on<T>(t, n.lt, [](T a, T b) { return a < b; });
  lanewise_on<T>(t, n.le, [](T a, T b) { return a <= b; });
  lanewise_on<T>(t, n.gt, [](T a, T b) { return a > b; });
  lanewise_on<T>(t, n.ge, [](T a, T b) { return a >= b; });
}
template <class T> auto wide(T v) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>) return float(v);
  else return v;
}
template <class T> struct FloatComparisons {
  const char *eq, *ne, *lt, *le, *gt, *ge, *equ, *neu, *ltu, *leu, *gtu, *geu, *num, *nan;
};
template <class T> void float_comparisons(Table& t, const FloatComparisons<T>& n) {
  lanewise_on<T>(t, n.eq, [](T a, T b) { return wide(a) == wide(b); });
  lanewise_on<T>(t, n.ne, [](T a, T b) { return wide(a) < wide(b) || wide(a) > wide(b); });
  lanewise_on<T>(t, n.lt, [](T a, T b) { return wide(a) < wide(b); });
  lanewise_on<T>(t, n.le, [](T a, T b) { return wide(a) <= wide(b); });
  lanewise_on<T>(t, n.gt, [](T a, T b) { return wide(a) > wide(b); });
  lanewise_on<T>(t, n.ge, [](T a, T b) { return wide(a) >= wide(b); });
  lanewise_on<T>(t, n.equ, [](T a, T b) { return !(wide(a) < wide(b) || wide(a) > wide(b)); });
  lanewise_on<T>(t, n.neu, [](T a, T b) { return !(wide(a) == wide(b)); });
  lanewise_on<T>(t, n.ltu, [](T a, T b) { return !(wide(a) >= wide(b)); });
  lanewise_on<T>(t, n.leu, [](T a, T b) { return !(wide(a) > wide(b)); });
  lanewise_on<T>(t, n.gtu, [](T a, T b) { return !(wide(a) <= wide(b)); });
  lanewise_on<T>(t, n.geu, [](T a, T b) { return !(wide(a) < wide(b)); });
  lanewise_on<T>(t, n.num, [](T a, T b) { return wide(a) == wide(a) && wide(b) == wide(b); });
  lanewise_on<T>(t, n.nan, [](T a, T b) { return !(wide(a) == wide(a) && wide(b) == wide(b)); });
}

}  // namespace

void add_comparisons(Table& t) {
#define NAMES(s) \
  {"setp.eq." s, "setp.ne." s, "setp.lt." s, "setp.le." s, "setp.gt." s, "setp.ge." s}
  integer_comparisons<i16>(t, NAMES("s16"));
  integer_comparisons<u16>(t, NAMES("u16"));
  integer_comparisons<i32>(t, NAMES("s32"));
  integer_comparisons<u32>(t, NAMES("u32"));
  integer_comparisons<i64>(t, NAMES("s64"));
  integer_comparisons<u64>(t, NAMES("u64"));
#undef NAMES
#define NAMES(s)                                                              \
  {"setp.eq." s,  "setp.ne." s,  "setp.lt." s,  "setp.le." s,  "setp.gt." s,  \
   "setp.ge." s,  "setp.equ." s, "setp.neu." s, "setp.ltu." s, "setp.leu." s, \
   "setp.gtu." s, "setp.geu." s, "setp.num." s, "setp.nan." s}
  float_comparisons<float>(t, NAMES("f32"));
  float_comparisons<double>(t, NAMES("f64"));
  float_comparisons<Half>(t, NAMES("f16"));
  float_comparisons<Bfloat>(t, NAMES("bf16"));
#undef NAMES
}

}  // namespace sim
