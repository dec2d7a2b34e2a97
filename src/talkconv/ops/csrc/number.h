// The four element types: how each is widened for arithmetic and rounded back. It is plain integer
// arithmetic, so that every compiler vectorizes it for every instruction set.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace talkconv {
namespace {

// These replace std::min and others, which have one body in the whole library: the linker could take it
// from an instruction set that this processor does not run.
template <class V>
constexpr V least(V a, V b) {
  return a < b ? a : b;
}

template <class V>
constexpr V most(V a, V b) {
  return a < b ? b : a;
}

template <class V>
constexpr bool is_nan(V value) {
  return value != value;
}

template <class V>
constexpr bool is_finite(V value) {
  return value - value == 0;
}

// Calls body(begin, width) for pieces of `piece` channels and for the rest. The width of a piece is a
// constant, so loops over its channels unroll fully.
template <int64_t count>
constexpr std::integral_constant<int64_t, 64 * count> pieces{};
constexpr auto piece = pieces<1>;

template <class Body>
inline void in_pieces(int64_t width, Body body) {
  int64_t begin = 0;
  for (; begin + piece <= width; begin += piece) body(begin, piece);
  if (begin < width) body(begin, width - begin);
}

template <class V>
inline void fill(V* values, int64_t count, V value) {
  for (int64_t k = 0; k < count; ++k) values[k] = value;
}

// Adds partial sums pairwise, in the same order for every instruction set. It is written with intrinsics,
// because compilers split the vectors into single numbers.
constexpr int64_t lanes = 16;

#if defined(__AVX2__)
inline __m256d four_of(const float* values) { return _mm256_cvtps_pd(_mm_loadu_ps(values)); }
inline __m256d four_of(const double* values) { return _mm256_loadu_pd(values); }

template <class A>
inline double sum_of_lanes(const A* sums) {
  const __m256d low = _mm256_add_pd(four_of(sums), four_of(sums + 8));
  const __m256d high = _mm256_add_pd(four_of(sums + 4), four_of(sums + 12));
  const __m256d quarters = _mm256_add_pd(low, high);
  const __m128d pairs =
      _mm_hadd_pd(_mm256_castpd256_pd128(quarters), _mm256_extractf128_pd(quarters, 1));
  return _mm_cvtsd_f64(_mm_add_sd(pairs, _mm_unpackhi_pd(pairs, pairs)));
}
#else
template <class A>
inline double sum_of_lanes(const A* sums) {
  double halves[lanes / 2];
  for (int64_t k = 0; k < lanes / 2; ++k) halves[k] = double(sums[k]) + double(sums[k + lanes / 2]);
  return ((halves[0] + halves[4]) + (halves[1] + halves[5])) +
         ((halves[2] + halves[6]) + (halves[3] + halves[7]));
}
#endif

struct bfloat16 {
  uint16_t bits;
};

struct float16 {
  uint16_t bits;
};

inline float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// The type in which single elements are multiplied; sums over tokens are always double.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

inline double widen(double value) { return value; }
inline float widen(float value) { return value; }
inline float widen(bfloat16 value) { return float_of(uint32_t(value.bits) << 16); }

inline float widen(float16 value) {
  const uint32_t sign = uint32_t(value.bits & 0x8000u) << 16;
  const uint32_t magnitude = uint32_t(value.bits & 0x7fffu) << 13;
  // the multiplication changes the exponent's bias and makes subnormals normal, both exactly
  const uint32_t finite = bits_of(float_of(magnitude) * 0x1p112f);
  const uint32_t infinite_or_nan = magnitude | 0x7f800000u;
  return float_of(sign | (magnitude >= 0x0f800000u ? infinite_or_nan : finite));
}

template <class T>
T narrow(Wide<T> value);

template <>
inline double narrow<double>(double value) {
  return value;
}

template <>
inline float narrow<float>(float value) {
  return value;
}

template <>
inline bfloat16 narrow<bfloat16>(float value) {
  const uint32_t bits = bits_of(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet_nan = (bits >> 16) | 0x40u;
  return {uint16_t((bits & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded)};
}

template <>
inline float16 narrow<float16>(float value) {
  const uint32_t sign = (bits_of(value) >> 16) & 0x8000u;
  const uint32_t bits = bits_of(value) & 0x7fffffffu;
  const uint32_t normal = (bits + 0xc8000fffu + ((bits >> 13) & 1u)) >> 13;
  // adding 0.5 lines a subnormal's bits up with the end of the mantissa and rounds to even
  const uint32_t subnormal = bits_of(float_of(bits) + 0.5f) - 0x3f000000u;
  const uint32_t huge = bits > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const uint32_t magnitude = bits >= 0x47800000u ? huge : bits < 0x38800000u ? subnormal : normal;
  return {uint16_t(sign | magnitude)};
}

}  // namespace
}  // namespace talkconv
