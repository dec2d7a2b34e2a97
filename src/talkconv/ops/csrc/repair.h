// Keeps NaN and infinities within the windows that contain them. Running sums carry them on to every
// later token of the chunk. The few chunks that hold one are summed again in linear time: first the finite
// elements, then for each special value the weight with which each window contains it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <limits>

#include "number.h"
#include "rows.h"

namespace talkconv {
namespace {

template <class V>
inline bool all_finite(const V* values, int64_t count) {
  int64_t special = 0;
  for (int64_t c = 0; c < count; ++c) special += is_finite(widen(values[c])) ? 0 : 1;
  return special == 0;
}

struct Tokens {
  int64_t begin, end;
};

// Returns the tokens whose windows can touch the chunk, or that the chunk's windows can touch.
inline Tokens tokens_reached(const Chunk& chunk, int64_t before, int64_t after) {
  return {most(int64_t{0}, chunk.begin - before - 1),
          least(chunk.sequence.length, least(chunk.end, chunk.sequence.length) + after + 1)};
}

template <class W>
inline bool is_special(W value, W special) {
  return is_nan(special) ? is_nan(value) : value == special;
}

// `sweep(input rows, output rows)` is the linear sweep to repeat. Returns false if memory ran out.
template <class T, class Sweep>
bool repair(const Chunk& chunk, Tokens reached, int64_t width, Rows<const T> input, Rows<T> output,
            Sweep sweep) {
  using W = Wide<T>;
  const int64_t end = least(chunk.end, chunk.sequence.length);
  const int64_t in_rows = reached.end - reached.begin, out_rows = end - chunk.begin;
  T* const memory = static_cast<T*>(std::malloc(size_t(in_rows + out_rows) * size_t(width) * sizeof(T)));
  if (memory == nullptr) return false;
  const Rows<T> part{memory, width, reached.begin};
  const Rows<const T> part_read{memory, width, reached.begin};
  const Rows<T> sums{memory + in_rows * width, width, chunk.begin};

  for (int64_t i = reached.begin; i < reached.end; ++i)
    for (int64_t c = 0; c < width; ++c)
      part[i][c] = is_finite(widen(input[i][c])) ? input[i][c] : narrow<T>(W(0));
  sweep(part_read, output);

  const W infinity = std::numeric_limits<W>::infinity();
  const W specials[] = {std::numeric_limits<W>::quiet_NaN(), infinity, -infinity};
  for (const W special : specials) {
    for (int64_t i = reached.begin; i < reached.end; ++i)
      for (int64_t c = 0; c < width; ++c)
        part[i][c] = narrow<T>(W(is_special(W(widen(input[i][c])), special)));
    sweep(part_read, sums);
    for (int64_t i = chunk.begin; i < end; ++i)
      for (int64_t c = 0; c < width; ++c)
        if (widen(sums[i][c]) > 0) output[i][c] = narrow<T>(widen(output[i][c]) + special);
  }
  std::free(memory);
  return true;
}

}  // namespace
}  // namespace talkconv
