// Texture and surface objects, as tex, suld and sust find them. Of such an instruction Ins::vec is
// the number of dimensions, which names_layer may add a coordinate to.
#pragma once

#include "../machine/machine.hpp"

namespace sim {

struct Program;

inline bool names_layer(const Ins& i) { return i.offset() & 1; }
inline u32 texel_bytes(const Texture& t) { return u32(t.channels) * t.element; }
// The sound texture or surface whose handle this is; false where there is none.
bool find_texture(Warp& w, u64 handle, Texture& t);
// plane: or layer.
u64 texel_address(const Texture& t, u64 byte, u64 row, u64 plane);
// Whether there is a coordinate for each dimension, and for the layer.
bool takes_texture(const Program&, const Ins& i);

}  // namespace sim
