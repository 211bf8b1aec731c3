// An instruction as the interpreter executes it.
#pragma once

#include <cstring>
#include <type_traits>

#include "../shared.hpp"

namespace sim {

struct Warp;
class Ins;

// What the warp does after an instruction.
enum class Flow { next, jumped, yield };
using Handler = Flow (*)(Warp&, const Ins&);

class Ins {
  i64 number = 0;  // what it is for an operation, the names below say

 public:
  Handler run;
  i32 o[8];      // operands: slots, predicates or numbers in the order of Named::shape; -1: absent;
                 // read under the names below or by operands()
  const i32* x;  // further operands (mma), and the lists that taint tracking walks
  i16 guard;     // predicate number, -1: none
  u8 negate;     // the guard is @!p
  u8 width;      // bytes of one element of a memory access
  u8 vec;        // elements of a memory access
  u8 space;
  u8 flags;   // constants of shared.hpp
  u8 dwidth;  // bytes of the destination register

  // of an operation on each lane alone
  i32 output() const { return o[0]; }
  i32 input(size_t k) const { return o[k + 1]; }
  // of an access to memory: elements in registers, address = base + offset
  i32 element(int k) const { return o[k]; }
  i32 base() const { return o[4]; }  // -1: none
  i32 base_bytes() const { return o[5]; }
  i32 order() const { return o[6]; }  // of ld, st, atom: constants of shared.hpp
  i64 offset() const { return number; }
  // of jumps and calls: where they go; of brx: how many places there are in x
  i64 target() const { return number; }
  i64 targets() const { return number; }
  i64 rank() const { return number; }              // of a block head
  int truth_table() const { return int(number); }  // of lop3
  i64 reduction() const { return number; }         // of a barrier
  i64 groups() const { return number; }            // of cp.async.wait_group: not waited for
  i64 pooled() const { return number; }            // where the operands begin in x

  void set_number(i64 value) { number = value; }
};

// What `o` holds under the names that a handler gives it: a struct of i32 in the order of its
// shape.
template <class Names> Names operands(const Ins& i) {
  static_assert(std::is_trivially_copyable_v<Names> && sizeof(Names) <= sizeof i.o);
  Names names;
  std::memcpy(&names, i.o, sizeof names);
  return names;
}

// What the head of a basic block holds. fuel: taken from the warp's turn: one, more for a block so
// long that the clock goes unseen. stack: of a function's first block: bytes that a call of it
// takes at least.
struct BlockOperands { i32 fuel, stack; };

}  // namespace sim
