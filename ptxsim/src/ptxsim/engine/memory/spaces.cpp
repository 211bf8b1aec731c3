#include "spaces.hpp"

#include "../program/operations.hpp"

namespace sim {
namespace {

constexpr u64 PARAM_WINDOW = u64{3} << 56;

const SharedArray* private_range(const Program& p, u64 address, u32 bytes) {
  for (const SharedArray& r : p.private_ranges)
    if (within(address, bytes, r.start, r.size)) return &r;
  return nullptr;
}

// --- addresses between spaces

template <u64 window> Flow to_generic(Warp& w, const Ins& i) {
  u64 *d = lanes<u64>(w, i.output()), *s = lanes<u64>(w, i.input(0));
  for (int l = 0; l < LANES; ++l)
    if (w.exec >> l & 1) d[l] = s[l] | window;
  return Flow::next;
}

Flow from_generic(Warp& w, const Ins& i) {
  u64 *d = lanes<u64>(w, i.output()), *s = lanes<u64>(w, i.input(0));
  for (int l = 0; l < LANES; ++l)
    if (w.exec >> l & 1) d[l] = s[l] & OFFSET_MASK;
  return Flow::next;
}

template <u64 window> Flow is_space(Warp& w, const Ins& i) {
  u64* s = lanes<u64>(w, i.input(0));
  u32 mask = 0;
  for (int l = 0; l < LANES; ++l) mask |= u32(s[l] >> 56 == window >> 56) << l;
  w.preds[i.output()] = (w.preds[i.output()] & ~w.exec) | (mask & w.exec);
  return Flow::next;
}

}  // namespace

void settle_private(Warp& w, Access& a, u8 space, Places& p, bool write) {
  const std::vector<u8>& params = w.block->machine->params;
  Hint& hint = hint_of(w, space);
  for (int l = 0; l < LANES; ++l) {
    if (!(a.mask >> l & 1)) continue;
    if (!hint.holds(a.at[l], a.at[l], a.bytes)) {
      bool inside = within(a.at[l], a.bytes, params.size());
      hint.low = 0;
      hint.high = params.size();
      if (space == LOCAL) {
        const SharedArray* r = private_range(*w.program, a.at[l], a.bytes);
        inside = r;
        hint.low = r ? r->start : 1;
        hint.high = r ? u64(r->start) + r->size : 0;
      }
      if (!inside) {
        Event e = event_at(w, OUT_OF_BOUNDS, l);
        e.address = a.at[l];
        e.size = a.bytes;
        e.space = space;
        e.write = write;
        w.block->machine->report(e);
        a.mask &= ~(1u << l);
        continue;
      }
    }
    p.at[l] = space == LOCAL ? w.local.data() + u64(l) * w.program->local_bytes + a.at[l]
                             : const_cast<u8*>(params.data()) + a.at[l];
  }
}

bool is_access(const Program&, const Ins& i) {
  const auto power = [](u32 n, u32 most) { return n && n <= most && !(n & (n - 1)); };
  return power(i.width, 8) && power(i.vec, 4) && i.width <= i.dwidth;
}

void add_addresses(Table& t) {
  add(t, "cvta.shared", to_generic<SHARED_WINDOW>, "w>w");
  add(t, "cvta.local", to_generic<LOCAL_WINDOW>, "w>w");
  add(t, "cvta.param", to_generic<PARAM_WINDOW>, "w>w");
  add(t, "cvta.to", from_generic, "w>w");
  add(t, "isspacep.shared", is_space<SHARED_WINDOW>, "p>w");
  add(t, "isspacep.local", is_space<LOCAL_WINDOW>, "p>w");
  add(t, "isspacep.global", is_space<0>, "p>w");
}

}  // namespace sim
