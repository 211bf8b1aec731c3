// Words of a key stream on the host: problems/inputs.py has the same stream, and says what it is.
// ChaCha's block function for four blocks at a time.
#include <cstdint>

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr int WORDS = 16, ROUNDS = 12, LANES = 4;
typedef u32 Lanes __attribute__((vector_size(sizeof(u32) * LANES)));  // a word of each block

constexpr u32 CONSTANTS[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};

template <int LEFT>
Lanes turned(Lanes x) {
  return x << LEFT | x >> (32 - LEFT);
}

void quarter_round(Lanes& a, Lanes& b, Lanes& c, Lanes& d) {
  a += b, d = turned<16>(d ^ a);
  c += d, b = turned<12>(b ^ c);
  a += b, d = turned<8>(d ^ a);
  c += d, b = turned<7>(b ^ c);
}

void make_blocks(const u32* key, Lanes counters, Lanes (&out)[WORDS]) {
  Lanes state[WORDS] = {};
  for (int i = 0; i < 4; ++i) state[i] += CONSTANTS[i];
  for (int i = 0; i < 8; ++i) state[4 + i] += key[i];
  state[12] = counters;
  for (int i = 0; i < WORDS; ++i) out[i] = state[i];
  for (int round = 0; round < ROUNDS; round += 2) {
    for (int i = 0; i < 4; ++i) quarter_round(out[i], out[4 + i], out[8 + i], out[12 + i]);
    for (int i = 0; i < 4; ++i)
      quarter_round(out[i], out[4 + (i + 1) % 4], out[8 + (i + 2) % 4], out[12 + (i + 3) % 4]);
  }
  for (int i = 0; i < WORDS; ++i) out[i] += state[i];
}

}  // namespace

// The words at `places` of the key's stream. Places that are neighbours share their block.
extern "C" void key_stream_words(const u32* key, const u64* places, u64 count, u32* words) {
  for (u64 first = 0; first < count;) {
    // The next places, as far as they lie in four blocks.
    Lanes counters = {};
    u64 starts[LANES + 1] = {first};
    int blocks = 1;
    counters[0] = static_cast<u32>(places[first] / WORDS);
    u64 last = first + 1;
    for (; last < count; ++last) {
      const u64 block = places[last] / WORDS;
      if (block == places[last - 1] / WORDS) continue;
      if (blocks == LANES) break;
      starts[blocks] = last;
      counters[blocks++] = static_cast<u32>(block);
    }
    starts[blocks] = last;
    Lanes stream[WORDS];
    make_blocks(key, counters, stream);
    for (int lane = 0; lane < blocks; ++lane)
      for (; first < starts[lane + 1]; ++first) words[first] = stream[places[first] % WORDS][lane];
  }
}
