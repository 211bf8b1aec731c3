#include "operations.hpp"

namespace sim {

void add(Table& t, std::string_view name, Handler handler, std::string_view shape, Sound sound) {
  t.push_back({std::string(name), handler, std::string(shape), sound});
}

const Table& operations() {
  static const Table table = [] {
    Table t;
    add_floats(t);
    add_directed(t);
    add_halves(t);
    add_integers(t);
    add_bits(t);
    add_logic(t);
    add_comparisons(t);
    add_carries(t);
    add_video(t);
    add_conversions(t);
    add_loads(t);
    add_stores(t);
    add_atomics(t);
    add_addresses(t);
    add_fences(t);
    add_async(t);
    add_mbarrier(t);
    add_branches(t);
    add_calls(t);
    add_heap(t);
    add_barriers(t);
    add_print(t);
    add_block_heads(t);
    add_undefined(t);
    add_warp(t);
    add_mma(t);
    add_exact_mma(t);
    add_matrix_accesses(t);
    add_proxy(t);
    add_bulk(t);
    add_tensor_copies(t);
    add_textures(t);
    add_surfaces(t);
    add_store_async(t);
    add_wgmma(t);
    add_cluster_addresses(t);
    add_cluster_barrier(t);
    add_clocks(t);
    add_dependency(t);
    for (Named& each : t) each.bits = bit_rule(each.name);
    return t;
  }();
  return table;
}

}  // namespace sim
