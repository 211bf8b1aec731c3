#pragma once

#include "../machine/warp.hpp"

namespace sim {

void complete_async(Warp& w);  // every copy the executing lanes issued

}  // namespace sim
