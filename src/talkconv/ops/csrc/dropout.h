// Dropout without a mask in memory: whether an element is kept follows from the seed and its index
// alone, so the backward draws the same decisions again, whatever the number of threads.
#pragma once

#include <cstdint>

#include "number.h"
#include "plan.h"

namespace talkconv {
namespace {

// SplitMix64: independent keys for neighbouring blocks.
inline uint64_t mixed(uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

// A 32-bit hash of the index with a key before each multiplication. It needs no 64-bit products,
// which AVX2 does not have, so compilers vectorize it.
inline uint32_t random_bits(uint32_t index, uint32_t key, uint32_t second_key) {
  uint32_t bits = index ^ key;
  bits = (bits ^ (bits >> 16)) * 0x7feb352du;
  bits = (bits ^ (bits >> 15) ^ second_key) * 0x846ca68bu;
  return bits ^ (bits >> 16);
}

template <class T>
void dropout_blocks(const talkconv_dropout_call& call, const void* from, void* to, int64_t first_block,
                    int64_t end_block) {
  const T* const x = static_cast<const T*>(from);
  T* const out = static_cast<T*>(to);
  // an element is dropped if its 32 random bits lie below this
  const auto threshold = uint32_t(call.probability * 0x1p32);
  const auto scale = Wide<T>(1 / (1 - call.probability));
  for (int64_t block = first_block; block < end_block; ++block) {
    const uint64_t keys = mixed(call.seed + mixed(uint64_t(block)));
    const auto key = uint32_t(keys), second_key = uint32_t(keys >> 32);
    const int64_t begin = block * dropout_block;
    const int64_t count = least(dropout_block, call.elements - begin);
    for (int64_t k = 0; k < count; ++k) {
      // a factor, not a choice between results: compilers vectorize it, and NaN stays NaN as in PyTorch
      const Wide<T> factor = random_bits(uint32_t(k), key, second_key) < threshold ? 0 : scale;
      out[begin + k] = narrow<T>(widen(x[begin + k]) * factor);
    }
  }
}

}  // namespace
}  // namespace talkconv
