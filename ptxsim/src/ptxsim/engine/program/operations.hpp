// The table of operations: what a PTX instruction becomes, the handler that executes it for a
// warp, and the operands that the handler takes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "instruction.hpp"

namespace sim {

struct Program;

// The operands that a handler takes, its outputs before ">", one letter each:
//   p  a predicate                      P  the same, or absent
//   n  a register of 32 bits or less    N  the same, or absent
//   w  a register of 64 bits            W  the same, or absent
//   v  a register of Ins::dwidth bytes  V  the same, or absent
//   a  an address: a register (or absent) and its width in bytes, two operands
//   i  a plain number                   -  absent
// Inputs may also be constants and special registers, which sit in slots of their own. Behind "*"
// the operands are in the pool. Python holds every operand against this (operation.py), and so
// does packed_program.cpp, whoever packed the program.
//
// `sound` says whether the numbers of an instruction are ones that the handler copes with.
using Sound = bool (*)(const Program&, const Ins&);
// Which bits of an operation's result are undefined, if some of its operands' are.
struct Partial { u64 value, undefined; };  // an operand in one lane
struct BitRule {
  u64 (*undefined)(const Partial* in, u32 width) = nullptr;  // null: all of them
  u32 width = 0;                                             // of the result
  bool is_signed = false;
  u32 from = 64;  // width of the first operand
  bool from_signed = false;
};
struct Named {
  std::string name;
  Handler handler;
  std::string shape;
  Sound sound = nullptr;
  BitRule bits{};
};
BitRule bit_rule(std::string_view name);
using Table = std::vector<Named>;
// Not inlined, since there are thousands of calls.
[[gnu::noinline]] void add(Table&, std::string_view name, Handler, std::string_view shape,
                           Sound = nullptr);
void add_floats(Table&);
void add_directed(Table&);
void add_halves(Table&);
void add_integers(Table&);
void add_bits(Table&);
void add_logic(Table&);
void add_comparisons(Table&);
void add_carries(Table&);
void add_video(Table&);
void add_conversions(Table&);
void add_loads(Table&);
void add_stores(Table&);
void add_atomics(Table&);
void add_addresses(Table&);
void add_fences(Table&);
void add_async(Table&);
void add_mbarrier(Table&);
void add_branches(Table&);
void add_calls(Table&);
void add_heap(Table&);
void add_barriers(Table&);
void add_block_heads(Table&);
void add_undefined(Table&);
void add_warp(Table&);
void add_mma(Table&);
void add_exact_mma(Table&);
void add_matrix_accesses(Table&);
void add_proxy(Table&);
void add_bulk(Table&);
void add_tensor_copies(Table&);
void add_textures(Table&);
void add_surfaces(Table&);
void add_store_async(Table&);
void add_wgmma(Table&);
void add_cluster_addresses(Table&);
void add_cluster_barrier(Table&);
void add_print(Table&);
void add_clocks(Table&);
void add_dependency(Table&);
const Table& operations();

}  // namespace sim
