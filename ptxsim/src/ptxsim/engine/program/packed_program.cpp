#include "packed_program.hpp"

#include <algorithm>
#include <string_view>

#include "../limits.hpp"
#include "../schedule/divergence.hpp"
#include "kinds.hpp"
#include "operations.hpp"

namespace sim {
namespace {

bool is_register(const Program& p, i32 slot, u32 bytes) {
  return slot >= 0 && within(u64(slot), bytes == 8 ? 2 : 1, p.slots);
}
bool is_predicate(const Program& p, i32 number) {
  return number >= 0 && u32(number) < p.predicates;
}

// Whether the operands from `o` on, `most` of them, are what `shape` says; the rest must be absent.
bool fits(const Program& p, const Ins& i, const std::string& shape, const i32* o, size_t most) {
  size_t at = 0;
  for (char kind : shape) {
    if (kind == '>' || kind == '*') continue;
    if (at + (kind == 'a') >= most) return false;
    const i32 operand = o[at++];
    const bool optional = kind == 'P' || kind == 'N' || kind == 'W' || kind == 'V';
    if (optional && operand == -1) continue;
    switch (kind) {
      case 'p':
      case 'P':
        if (!is_predicate(p, operand)) return false;
        break;
      case 'n':
      case 'N':
        if (!is_register(p, operand, 4)) return false;
        break;
      case 'w':
      case 'W':
        if (!is_register(p, operand, 8)) return false;
        break;
      case 'v':
      case 'V':
        if (!is_register(p, operand, i.dwidth)) return false;
        break;
      case 'a': {
        const i32 bytes = o[at++];
        if (bytes != 4 && bytes != 8) return false;
        if (operand != -1 && !is_register(p, operand, u32(bytes))) return false;
        break;
      }
      case '-':
        if (operand != -1) return false;
        break;
      default: break;  // a number: for Named::sound
    }
  }
  return std::all_of(o + at, o + most, [](i32 operand) { return operand == -1; });
}

// The lists that taint tracking walks: [outputs…, inputs…, predicate outputs…, predicate inputs…],
// each behind its length. Moves `at` behind them.
bool are_taint_lists(const Program& p, const Ins& i, size_t& at) {
  i32 lengths[4];
  for (int list = 0; list < 4; ++list) {
    if (at >= p.pool.size()) return false;
    const i32 length = lengths[list] = p.pool[at++];
    if (length < 0 || !within(at, u64(length), p.pool.size())) return false;
    for (i32 k = 0; k < length; ++k, ++at)
      if (list < 2 ? !is_register(p, p.pool[at], 4) : !is_predicate(p, p.pool[at])) return false;
  }
  return !(i.flags & SELECTS) || (lengths[1] >= 2 && lengths[3] >= 1);
}

bool is_sound(const Program& p, const Ins& i, const Named& named, i32 pool) {
  if (i.space >= SPACES || (i.dwidth != 4 && i.dwidth != 8)) return false;
  if (i.guard != -1 && !is_predicate(p, i.guard)) return false;
  if (pool < -1 || (pool >= 0 && u64(pool) >= p.pool.size())) return false;
  const bool pooled = named.shape[0] == '*', branches = named.name == "brx";
  size_t at = size_t(pool);
  if (branches) {
    if (pool < 0 || i.targets() < 1 || !within(at, u64(i.targets()), p.pool.size())) return false;
  } else if (pool >= 0) {
    if (!are_taint_lists(p, i, at)) return false;
    if (pooled && u64(i.pooled()) != at - size_t(pool)) return false;
  }
  if (pooled) {
    const size_t count = named.shape.size() - 2;
    if (pool < 0 || !within(at, count, p.pool.size()) ||
        !fits(p, i, named.shape, p.pool.data() + at, count))
      return false;
  } else if (!fits(p, i, named.shape, i.o, std::size(i.o))) {
    return false;
  }
  return !named.sound || named.sound(p, i);
}

bool names_externs(const Program& p) {
  return std::all_of(p.extern_arrays.begin(), p.extern_arrays.end(),
                     [&](u8 name) { return name <= p.extern_ends.size(); });
}

bool is_cell(u32 bytes) { return bytes == 1 || bytes == 2 || bytes == 4; }

// What belongs to no single instruction.
bool is_laid_out(const Program& p, const PackedProgram& packed) {
  if (operations()[packed.code[packed.length - 1].operation].name != "exit" ||
      p.code.back().guard != -1)
    return false;
  if (p.entry >= p.code.size() || p.code[p.entry].run != block_head) return false;
  if (p.local_bytes > MAX_LOCAL_BYTES || p.shared_bytes > MAX_SHARED_BYTES) return false;
  if (p.arrays.empty() || p.arrays.back().start > p.shared_bytes) return false;
  if (p.reserved && (p.arrays.size() < 2 || p.reserved > p.arrays[0].size)) return false;
  for (size_t k = 0; k + 1 < p.arrays.size(); ++k)
    if (!within(p.arrays[k].start, p.arrays[k].size, p.shared_bytes)) return false;
  if (!names_externs(p)) return false;
  for (const SharedArray& range : p.private_ranges)
    if (!within(range.start, range.size, p.local_bytes)) return false;
  for (const Preset& c : p.constants)
    if (!is_register(p, i32(c.slot), c.width)) return false;
  for (int which = 0; which < SPECIALS; ++which)
    if (p.special[which] != -1 && !is_register(p, p.special[which], 4)) return false;
  return true;
}

}  // namespace

u64 load(const PackedProgram& packed, Program& program) {
  if (!packed.length || !is_cell(packed.shared_cell) || !is_cell(packed.global_cell))
    return packed.length;
  if (packed.externs > MOST_EXTERNS) return packed.length;
  if (packed.slots > u32(INT32_MAX) / 2 || packed.ranks >= u64{1} << 20) return packed.length;
  for (u64 k = 0; k < packed.length; ++k)
    if (packed.code[k].operation < 0 || size_t(packed.code[k].operation) >= operations().size())
      return k;
  program.pool.assign(packed.pool, packed.pool + packed.pool_length);
  program.code.resize(packed.length);
  program.named.resize(packed.length);
  for (u64 k = 0; k < packed.length; ++k) {
    const PackedIns& in = packed.code[k];
    Ins& out = program.code[k];
    program.named[k] = &operations()[in.operation];
    out.run = program.named[k]->handler;
    std::copy(in.o, in.o + 8, out.o);
    out.set_number(in.imm);
    out.x =
        in.pool < 0 || u64(in.pool) >= packed.pool_length ? nullptr : program.pool.data() + in.pool;
    out.guard = in.guard;
    out.negate = in.negate;
    out.width = in.width;
    out.vec = in.vec;
    out.space = in.space;
    out.flags = in.flags;
    out.dwidth = in.dwidth;
    program.has_volatile |= out.flags & SYNCHRONISES && out.order() & VOLATILE;
    program.has_strong_loads |= out.flags & SYNCHRONISES && is_load(out) && out.space != SHARED;
    program.has_bulk_copies |= is_bulk_copy(out);
  }
  program.constants.assign(packed.constants, packed.constants + packed.constants_length);
  std::copy(packed.special, packed.special + SPECIALS, program.special);
  program.arrays.assign(packed.arrays, packed.arrays + packed.arrays_length);
  program.private_ranges.assign(packed.private_ranges,
                                packed.private_ranges + packed.private_length);
  program.ranks = u32(packed.ranks);
  program.reach_row = u32((packed.ranks + 31) / 32);
  program.reach.assign(packed.reach, packed.reach + packed.ranks * program.reach_row);
  program.slots = packed.slots;
  program.predicates = packed.predicates;
  program.entry = packed.entry;
  program.local_bytes = packed.local_bytes;
  program.shared_bytes = packed.shared_bytes;
  program.reserved = packed.reserved_bytes;
  program.own_arrays.assign(packed.own_arrays, packed.own_arrays + packed.length);
  if (packed.externs) {
    program.extern_arrays.assign(packed.extern_arrays, packed.extern_arrays + packed.length);
    program.extern_ends.assign(packed.externs, 0);
  }
  program.shared_shift = u32(__builtin_ctz(packed.shared_cell));
  program.global_shift = u32(__builtin_ctz(packed.global_cell));
  if (!is_laid_out(program, packed)) return packed.length;
  for (u64 k = 0; k < packed.length; ++k)
    if (!is_sound(program, program.code[k], operations()[packed.code[k].operation],
                  packed.code[k].pool))
      return k;
  program.blocks.resize(packed.length);
  program.guarded.resize(packed.length);
  program.memory.resize(packed.length);
  program.source.resize(packed.length);
  return SOUND;
}

}  // namespace sim
