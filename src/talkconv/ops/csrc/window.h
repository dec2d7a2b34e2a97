// From relative offsets to windows in tokens.
#pragma once

#include <cstdint>

#include "number.h"
#include "plan.h"

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

// Positions stay integers; only the reach is real. The product with l_max is exact in double for
// float32 and half offsets, so "at an integer" means exactly that.
inline Reach reach_of(double offset, double max_offset, int64_t max_tokens, int64_t limit) {
  const double clamped = offset > 0 ? (offset < max_offset ? offset : max_offset) : 0;
  const double tokens = clamped * double(max_tokens);
  // also where the product is huge the conversion stays defined: no token lies beyond the limit
  const int64_t whole = tokens < double(limit) ? int64_t(tokens) : limit;
  const double part = tokens < double(limit) ? tokens - double(whole) : 0;
  return {whole, part, part > 0 && offset == clamped};
}

inline double load_offset(const talkconv_tensor& offsets, int32_t dtype, int64_t index) {
  switch (dtype) {
    case TALKCONV_F64:
      return static_cast<const double*>(offsets.data)[index];
    case TALKCONV_BF16:
      return widen(static_cast<const bfloat16*>(offsets.data)[index]);
    case TALKCONV_F16:
      return widen(static_cast<const float16*>(offsets.data)[index]);
    default:
      return static_cast<const float*>(offsets.data)[index];
  }
}

inline int64_t offset_index(const talkconv_tensor& offsets, const Sequence& sequence,
                            int64_t token) {
  return sequence.batch * offsets.batch_stride + (sequence.first + token) * offsets.time_stride;
}

inline Window window_of(const Plan& plan, const talkconv_tensor& left, const talkconv_tensor& right,
                        const Sequence& sequence, int64_t token, int64_t head) {
  const talkconv_problem& p = plan.problem;
  const int64_t row = token - p.context;
  double l = 0, r = 0;
  if (p.l_max > 0) l = load_offset(left, p.offset_dtype, offset_index(left, sequence, row) + head);
  if (p.r_max > 0) r = load_offset(right, p.offset_dtype, offset_index(right, sequence, row) + head);
  if (is_nan(l) || is_nan(r)) return {{0, 0, false}, {0, 0, false}, true};
  return {reach_of(l, p.max_offset, p.l_max, plan.reach_left),
          reach_of(r, p.max_offset, p.r_max, plan.reach_right), false};
}

}  // namespace
}  // namespace talkconv
