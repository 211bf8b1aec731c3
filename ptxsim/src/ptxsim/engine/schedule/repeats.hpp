// Launches that repeat: one that finds what an equal one found leaves what that one left.
#pragma once

#include "../machine/machine.hpp"

namespace sim {

// Whether a launch, of which all is `asked`, finds what one before it found, which came to its end
// without an event or output. Memory is then what that one left. If not, the next launch of the
// machine is taken to be this one.
bool recall(Machine& m, const std::string& asked);

// What lies around a launch that may be recalled later. True if what it finds is kept.
bool begin_memo(Machine& m, Memo& memo);
void end_memo(Machine& m, Memo& memo, bool kept);

}  // namespace sim
