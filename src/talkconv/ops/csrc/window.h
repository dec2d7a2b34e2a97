// Turns relative offsets into windows in tokens.
#pragma once

#include <cstdint>

#include "number.h"
#include "plan.h"
#include "rows.h"

namespace talkconv {
namespace {

inline int64_t offset_index(const Tensor& offsets, const Sequence& sequence,
                            int64_t token) {
  return sequence.batch * offsets.strides.batch + (sequence.first + token) * offsets.strides.time;
}

// The windows of a slice's heads over a few tokens. They are computed side by side, because computing
// them one by one would cost as much as the sums. Window k belongs to head k % heads of the token
// `begin + token[k]`.
class Windows {
 public:
  static constexpr int64_t capacity = most_windows;

  // How far each window reaches to one side: over `whole` tokens, and over one more by `part`.
  struct Side {
    double offset[capacity];
    double part[capacity];
    int32_t whole[capacity];
    int32_t has_part[capacity];      // part > 0
    int32_t has_gradient[capacity];  // the offset is neither clamped nor exactly at a token
  };

  int64_t begin = 0;
  int64_t tokens = 0;
  int64_t count = 0;
  int32_t token[capacity];
  Side left, right;
  int32_t is_nan[capacity];  // an offset is NaN: the window is the token alone, and its output NaN

  Windows(const Plan& plan, const Tensor& left_offsets,
          const Tensor& right_offsets, const Sequence& sequence, const Heads& heads)
      : plan_(plan),
        left_offsets_(left_offsets),
        right_offsets_(right_offsets),
        sequence_(sequence),
        heads_(heads) {
    // This is k / heads.count, exact for such small numbers. Unlike a division it vectorizes.
    const int32_t inverse = int32_t((65536 + heads.count - 1) / heads.count);
    for (int32_t k = 0; k < int32_t(capacity); ++k) token[k] = (k * inverse) >> 16;
  }

  // Computes the windows of the tokens from `first` on: as many as there is room for, up to `end` and
  // at most `most_tokens`.
  void work_out(int64_t first, int64_t end, int64_t most_tokens) {
    begin = first;
    tokens = least(least(capacity / heads_.count, most_tokens), end - first);
    count = tokens * heads_.count;
    const talkconv_problem& p = plan_.problem;
    load(left_offsets_, p.l_max, left);
    load(right_offsets_, p.r_max, right);
    for (int64_t k = 0; k < count; ++k) {
      const bool nan = talkconv::is_nan(left.offset[k]) | talkconv::is_nan(right.offset[k]);
      is_nan[k] = nan;
      left.offset[k] = nan ? 0 : left.offset[k];
      right.offset[k] = nan ? 0 : right.offset[k];
    }
    reach(p.max_offset, double(p.l_max), double(plan_.reach_left), left);
    reach(p.max_offset, double(p.r_max), double(plan_.reach_right), right);
  }

 private:
  void load(const Tensor& offsets, int64_t max_tokens, Side& side) const {
    if (max_tokens == 0) {
      fill(side.offset, count, 0.0);
      return;
    }
    switch (plan_.problem.offset_dtype) {
      case TALKCONV_F64:
        return load_as<double>(offsets, side);
      case TALKCONV_BF16:
        return load_as<bfloat16>(offsets, side);
      case TALKCONV_F16:
        return load_as<float16>(offsets, side);
      default:
        return load_as<float>(offsets, side);
    }
  }

  template <class T>
  void load_as(const Tensor& offsets, Side& side) const {
    const T* row = static_cast<const T*>(offsets.data) +
                   offset_index(offsets, sequence_, begin - plan_.problem.context) + heads_.first;
    // a short loop of unknown length costs more than what it copies
    switch (heads_.count) {
      case 1:
        return load_rows(row, offsets.strides.time, std::integral_constant<int64_t, 1>{}, side.offset);
      case 2:
        return load_rows(row, offsets.strides.time, std::integral_constant<int64_t, 2>{}, side.offset);
      case 4:
        return load_rows(row, offsets.strides.time, std::integral_constant<int64_t, 4>{}, side.offset);
      default:
        return load_rows(row, offsets.strides.time, heads_.count, side.offset);
    }
  }

  template <class T, class Count>
  void load_rows(const T* row, int64_t stride, Count heads, double* __restrict to) const {
    for (int64_t i = 0; i < tokens; ++i, row += stride, to += heads)
      for (int64_t h = 0; h < heads; ++h) to[h] = widen(row[h]);
  }

  // Positions stay integers; only the reach is a real number. Its product with max_tokens is exact in
  // double for float32 and half offsets, so `part > 0` is exact too. No token lies beyond the limit, and
  // up to the limit the conversion to an integer is defined.
  void reach(double max_offset, double max_tokens, double limit, Side& side) const {
    for (int64_t k = 0; k < count; ++k) {
      const double offset = side.offset[k];
      const double clamped = offset > 0 ? (offset < max_offset ? offset : max_offset) : 0;
      const double wanted = clamped * max_tokens;
      const double tokens = wanted < limit ? wanted : limit;
      const int32_t whole = int32_t(tokens);
      const double part = tokens - double(whole);
      side.whole[k] = whole;
      side.part[k] = part;
      side.has_part[k] = part > 0;
      side.has_gradient[k] = (part > 0) & (offset == clamped);
    }
  }

  const Plan& plan_;
  const Tensor& left_offsets_;
  const Tensor& right_offsets_;
  const Sequence& sequence_;
  const Heads heads_;
};

// Returns the place in a ring of `size` rows of a row from -size to 3 * size - 1. No row lies outside this
// range: windows are computed for at most one turn of the ring, and they reach over less than another.
inline int32_t wrapped(int32_t row, int32_t size) {
  row += row < 0 ? size : 0;
  row -= row >= size ? size : 0;
  row -= row >= size ? size : 0;
  return row;
}

// The terms of each window's sum: the difference of two running sums, and a weighted token at each edge.
// Running sums exist only at every second place. A window that begins or ends at an odd place uses the
// neighbouring sum and corrects it with the edge token:
// - if the edge token counts in part, the sum outside the window is used, and the token's weight is
//   reduced by 1;
// - otherwise the sum inside the window is used, and one more whole token is added.
// So no token outside a window is ever added and subtracted again, which would leave a rounding error.
template <class T>
class Terms {
 public:
  static constexpr int64_t capacity = Windows::capacity;

  int32_t first[capacity], past[capacity];              // rows of a ring of running sums
  int32_t left_token[capacity], right_token[capacity];  // counted from the windows' first token
  Wide<T> whole[capacity], left[capacity], right[capacity];  // weights, the scale included

  // Windows are cut at the tokens `low` and `high`. `before` counts the tokens from the first running sum
  // to the windows' first token, and `rows` the rows of the ring.
  void find(const Windows& windows, int64_t low, int64_t high, int64_t before, int64_t rows,
            double scale, Wide<T> scale_if_nan) {
    // positions count from the windows' first token; no window reaches as far as `far`
    constexpr int64_t far = int64_t{1} << 30;
    const int32_t lowest = int32_t(most(low - windows.begin, -far));
    const int32_t highest = int32_t(least(high - windows.begin, far));
    const int32_t own_odd = int32_t(before & 1), size = int32_t(rows);
    const int32_t own = int32_t((before - own_odd) / 2 % rows);
    for (int64_t k = 0; k < windows.count; ++k) {
      const int32_t token = windows.token[k];
      const int32_t start = token - windows.left.whole[k];
      const int32_t stop = token + windows.right.whole[k] + 1;
      const int32_t begin = least(most(start, lowest), highest);
      const int32_t end = least(most(stop, lowest), highest);
      const int32_t left_part = windows.left.has_part[k] & (start > lowest) & (start <= highest);
      const int32_t right_part = windows.right.has_part[k] & (stop >= lowest) & (stop < highest);
      const int32_t begin_odd = (begin + own_odd) & (begin < end) & 1;
      const int32_t end_odd = (end + own_odd) & (begin < end) & 1;
      const int32_t from = begin + (left_part ? -begin_odd : begin_odd);
      const int32_t to = end + (right_part ? end_odd : -end_odd);
      first[k] = wrapped(own + ((from + own_odd) >> 1), size);
      past[k] = wrapped(own + ((to + own_odd) >> 1), size);
      left_token[k] = left_part ? begin - 1 : begin_odd ? begin : token;
      right_token[k] = right_part ? end : end_odd ? end - 1 : token;
      left_count_[k] = left_part ? -begin_odd : begin_odd;
      right_count_[k] = right_part ? -end_odd : end_odd;
      has_left_[k] = left_part;
      has_right_[k] = right_part;
    }
    for (int64_t k = 0; k < windows.count; ++k)
      whole[k] = windows.is_nan[k] ? scale_if_nan : Wide<T>(scale);
    weigh(left_count_, has_left_, windows.left.part, windows.count, left);
    weigh(right_count_, has_right_, windows.right.part, windows.count, right);
  }

 private:
  // `__restrict`: compilers cannot see that `to` overlaps nothing, and would not vectorize
  void weigh(const int32_t* count, const int32_t* has_part, const double* part, int64_t windows,
             Wide<T>* __restrict to) const {
    for (int64_t k = 0; k < windows; ++k)
      to[k] = whole[k] * (Wide<T>(count[k]) + Wide<T>(has_part[k]) * Wide<T>(part[k]));
  }

  // the whole tokens that an edge adds or subtracts, and whether its token counts in part
  int32_t left_count_[capacity], right_count_[capacity], has_left_[capacity], has_right_[capacity];
};

}  // namespace
}  // namespace talkconv
