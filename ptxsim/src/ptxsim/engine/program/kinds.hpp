// What kind of instruction did something; each is answered beside the handler.
#pragma once

#include "instruction.hpp"

namespace sim {

bool is_load(const Ins& i);               // ld
bool is_load_matrix(const Ins& i);        // ldmatrix
bool is_bulk_copy(const Ins& i);          // of any kind, to shared memory
bool is_bulk_store(const Ins& i);         // the same to global memory
bool is_async_copy(const Ins& i);         // cp.async
bool arrives_after_copies(const Ins& i);  // cp.async.mbarrier.arrive
bool completes_at_mbarrier(
    const Ins& i);  // a bulk copy to shared memory, st.async, cp.async's arrival
bool is_wgmma(const Ins& i);

}  // namespace sim
