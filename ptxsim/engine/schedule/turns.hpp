#pragma once

namespace sim {

double cpu_seconds();  // of this thread

}  // namespace sim
