// Rows of channels along time, and how finished rows go to memory.
#pragma once

#include <cstdint>
#include <cstring>

#include "plan.h"

#if defined(__AVX2__) || defined(__AVX512F__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace talkconv {
namespace {

// Channels of one slice, row `first` at `data`.
template <class T>
struct Rows {
  T* data;
  int64_t stride;
  int64_t first;

  T* operator[](int64_t token) const { return data + (token - first) * stride; }
};

template <class T>
Rows<T> rows_of(const talkconv_tensor& tensor, const Sequence& sequence, int64_t channel,
                int64_t context = 0) {
  T* data = static_cast<T*>(tensor.data) + sequence.batch * tensor.batch_stride +
            sequence.first * tensor.time_stride + channel;
  return {data, tensor.time_stride, context};
}

// The heads that a slice holds: whole ones, or a part of a single one.
struct Heads {
  int64_t first, count, width;  // width: channels of each
};

inline Heads heads_of(const Plan& plan, int64_t channel, int64_t width) {
  const int64_t per_head = plan.channels_per_head;
  if (per_head > width) return {channel / per_head, 1, width};
  return {channel / per_head, width / per_head, per_head};
}

// A slice's rows lie a whole row of channels apart, farther than hardware prefetchers follow.
constexpr int64_t prefetch_distance = 8;

// Asks for the channels of the row that comes prefetch_distance rows later. Past the last row that is an
// address nobody reads: asking for it is allowed, it has no effect.
template <class T>
inline void prefetch_ahead(const T* row, int64_t stride, int64_t width) {
#if defined(__GNUC__) || defined(__clang__)
  const uintptr_t ahead =
      reinterpret_cast<uintptr_t>(row) + uintptr_t(prefetch_distance * stride) * sizeof(T);
  for (int64_t at = 0; at < width * int64_t(sizeof(T)); at += 64)
    __builtin_prefetch(reinterpret_cast<const void*>(ahead + uintptr_t(at)));
#else
  (void)row, (void)stride, (void)width;
#endif
}

// Rows are finished in a buffer first: loads of x and stores of the output whose addresses agree in
// their last 12 bits would wait for each other. `stream` then writes around the caches.
inline void write_row(void* to, const void* staged, int64_t bytes, bool stream) {
#if defined(__AVX512F__)
  if (stream && bytes % 64 == 0 && reinterpret_cast<uintptr_t>(to) % 64 == 0) {
    for (int64_t at = 0; at < bytes; at += 64)
      _mm512_stream_si512(reinterpret_cast<__m512i*>(static_cast<char*>(to) + at),
                          _mm512_load_si512(static_cast<const char*>(staged) + at));
    return;
  }
#elif defined(__AVX2__)
  if (stream && bytes % 32 == 0 && reinterpret_cast<uintptr_t>(to) % 32 == 0) {
    for (int64_t at = 0; at < bytes; at += 32)
      _mm256_stream_si256(
          reinterpret_cast<__m256i*>(static_cast<char*>(to) + at),
          _mm256_load_si256(reinterpret_cast<const __m256i*>(static_cast<const char*>(staged) + at)));
    return;
  }
#endif
  (void)stream;
  std::memcpy(to, staged, size_t(bytes));
}

// Streamed rows become visible to other threads in order.
inline void finish_writing(bool stream) {
#if defined(__AVX2__) || defined(__AVX512F__)
  if (stream) _mm_sfence();
#else
  (void)stream;
#endif
}

}  // namespace
}  // namespace talkconv
