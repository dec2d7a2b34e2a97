// Rows of channels along time, and how finished rows go to memory.
#pragma once

#include <cstdint>
#include <cstring>

#include "number.h"
#include "plan.h"

#if defined(__AVX2__) || defined(__AVX512F__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace talkconv {
namespace {

// The channels of one slice; the row of token `first` lies at `data`.
template <class T>
struct Rows {
  T* data;
  int64_t stride;
  int64_t first;

  T* operator[](int64_t token) const { return data + (token - first) * stride; }
};

template <class T>
Rows<T> rows_of(const Tensor& tensor, const Sequence& sequence, int64_t channel,
                int64_t context = 0) {
  T* data = static_cast<T*>(tensor.data) + sequence.batch * tensor.strides.batch +
            sequence.first * tensor.strides.time + channel;
  return {data, tensor.strides.time, context};
}

// The heads of a slice: several whole heads, or a part of one.
struct Heads {
  int64_t first, count, width;  // width: channels of each
};

inline Heads heads_of(const Plan& plan, int64_t channel, int64_t width) {
  const int64_t per_head = plan.channels_per_head;
  if (per_head > width) return {channel / per_head, 1, width};
  return {channel / per_head, width / per_head, per_head};
}

// Calls sweep(width, head_width) with constants for common widths, so that loops over channels unroll.
template <class Sweep>
bool with_known_widths(const Heads& heads, int64_t width, Sweep sweep) {
  if (heads.width != piece) return sweep(width, heads.width);
  switch (heads.count) {
    case 1:
      return sweep(piece, piece);
    case 2:
      return sweep(pieces<2>, piece);
    case 4:
      return sweep(pieces<4>, piece);
    default:
      return sweep(width, piece);
  }
}

// Prefetches the channels of a row that will be read soon, if it lies before `end`. The rows of a slice
// are a whole row of channels apart, which is farther than hardware prefetchers follow.
template <class T, class Width>
inline void prefetch_ahead(Rows<const T> rows, int64_t token, int64_t end, Width width) {
  constexpr int64_t distance = 8;
  if (token + distance >= end) return;
#if defined(__GNUC__) || defined(__clang__)
  const char* const row = reinterpret_cast<const char*>(rows[token + distance]);
  for (int64_t at = 0; at < width * int64_t(sizeof(T)); at += 64) __builtin_prefetch(row + at);
#else
  (void)rows, (void)width;
#endif
}

// Copies a finished row to memory around the caches, if the processor can.
inline void stream_row(void* to, const void* staged, int64_t bytes) {
#if defined(__AVX512F__)
  if (bytes % 64 == 0 && reinterpret_cast<uintptr_t>(to) % 64 == 0) {
    for (int64_t at = 0; at < bytes; at += 64)
      _mm512_stream_si512(reinterpret_cast<__m512i*>(static_cast<char*>(to) + at),
                          _mm512_load_si512(static_cast<const char*>(staged) + at));
    return;
  }
#elif defined(__AVX2__)
  if (bytes % 32 == 0 && reinterpret_cast<uintptr_t>(to) % 32 == 0) {
    for (int64_t at = 0; at < bytes; at += 32)
      _mm256_stream_si256(
          reinterpret_cast<__m256i*>(static_cast<char*>(to) + at),
          _mm256_load_si256(reinterpret_cast<const __m256i*>(static_cast<const char*>(staged) + at)));
    return;
  }
#endif
  std::memcpy(to, staged, size_t(bytes));
}

inline void write_row(void* to, const void* staged, int64_t bytes, bool stream) {
  if (stream) return stream_row(to, staged, bytes);
  std::memcpy(to, staged, size_t(bytes));
}

}  // namespace
}  // namespace talkconv
