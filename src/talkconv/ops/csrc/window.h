// From relative offsets to windows in tokens.
#pragma once

#include <cstdint>

#include "number.h"
#include "plan.h"
#include "rows.h"

namespace talkconv {
namespace {

// How far a window reaches to one side: `whole` tokens fully, one more by `part`.
struct Reach {
  int64_t whole;
  double part;
  bool has_gradient;  // the reach moves with its offset: neither clamped nor at an integer
};

struct Window {
  Reach left, right;
  bool is_nan;  // an offset was NaN: the window is the token alone and its output NaN
};

inline int64_t offset_index(const talkconv_tensor& offsets, const Sequence& sequence,
                            int64_t token) {
  return sequence.batch * offsets.batch_stride + (sequence.first + token) * offsets.time_stride;
}

// The windows of a slice's heads, token after token. They are worked out for a few dozen windows at a
// time, side by side in vector registers: one by one they would cost as much as the sums.
class Windows {
 public:
  Windows(const Plan& plan, const talkconv_tensor& left, const talkconv_tensor& right,
          const Sequence& sequence, const Heads& heads, int64_t end)
      : plan_(plan), left_(left), right_(right), sequence_(sequence), heads_(heads), end_(end) {}

  // Call with rising tokens, before window().
  void move_to(int64_t token) {
    if (token >= batch_end_) work_out(token);
    place_ = (token - batch_begin_) * heads_.count;
  }

  Window window(int64_t head) const {
    const int64_t k = place_ + head;
    return {{left_side_.whole[k], left_side_.part[k], left_side_.has_gradient[k] != 0},
            {right_side_.whole[k], right_side_.part[k], right_side_.has_gradient[k] != 0},
            is_nan_[k] != 0};
  }

 private:
  static constexpr int64_t batch = 64;
  static constexpr int64_t capacity = 256;  // a slice has at most that many heads

  struct Side {
    double offset[capacity];
    double part[capacity];
    int32_t whole[capacity];
    int32_t has_gradient[capacity];
  };

  void work_out(int64_t token) {
    batch_begin_ = token;
    batch_end_ = least(token + most(batch / heads_.count, int64_t{1}), end_);
    const talkconv_problem& p = plan_.problem;
    const int64_t count = (batch_end_ - batch_begin_) * heads_.count;
    load(left_, p.l_max, left_side_);
    load(right_, p.r_max, right_side_);
    for (int64_t k = 0; k < count; ++k) {
      is_nan_[k] = is_nan(left_side_.offset[k]) || is_nan(right_side_.offset[k]) ? 1 : 0;
      if (is_nan_[k]) left_side_.offset[k] = right_side_.offset[k] = 0;
    }
    reach(p.max_offset, double(p.l_max), double(plan_.reach_left), count, left_side_);
    reach(p.max_offset, double(p.r_max), double(plan_.reach_right), count, right_side_);
  }

  void load(const talkconv_tensor& offsets, int64_t max_tokens, Side& side) const {
    if (max_tokens == 0) {
      fill(side.offset, (batch_end_ - batch_begin_) * heads_.count, 0.0);
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
  void load_as(const talkconv_tensor& offsets, Side& side) const {
    const int64_t begin = batch_begin_ - plan_.problem.context;
    const T* row = static_cast<const T*>(offsets.data) +
                   offset_index(offsets, sequence_, begin) + heads_.first;
    double* to = side.offset;
    for (int64_t i = batch_begin_; i < batch_end_; ++i, row += offsets.time_stride)
      for (int64_t h = 0; h < heads_.count; ++h) *to++ = widen(row[h]);
  }

  // Positions stay integers; only the reach is real. The product with max_tokens is exact in double
  // for float32 and half offsets, so "at an integer" means exactly that. No token lies beyond the
  // limit, and below it the conversion to an integer is always defined.
  static void reach(double max_offset, double max_tokens, double limit, int64_t count, Side& side) {
    for (int64_t k = 0; k < count; ++k) {
      const double offset = side.offset[k];
      const double clamped = offset > 0 ? (offset < max_offset ? offset : max_offset) : 0;
      const double wanted = clamped * max_tokens;
      const double tokens = wanted < limit ? wanted : limit;
      const int32_t whole = int32_t(tokens);
      const double part = tokens - double(whole);
      side.whole[k] = whole;
      side.part[k] = part;
      side.has_gradient[k] = (part > 0) & (offset == clamped);
    }
  }

  const Plan& plan_;
  const talkconv_tensor& left_;
  const talkconv_tensor& right_;
  const Sequence& sequence_;
  const Heads heads_;
  const int64_t end_;
  int64_t batch_begin_ = 0, batch_end_ = -1, place_ = 0;
  Side left_side_, right_side_;
  int32_t is_nan_[capacity];
};

}  // namespace
}  // namespace talkconv
