#pragma once

#include "../machine/block.hpp"

namespace sim {

// Every copy that the lane issued lands in the phase of its mbarrier.
void land_at_mbarrier(Warp& w, int lane, MBarrier& b);

}  // namespace sim
