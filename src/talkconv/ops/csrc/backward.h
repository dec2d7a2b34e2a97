// The gradients. grad_x[j] collects scale * w(i, j) * grad_out[i] from every window i that holds j:
// each window adds four entries to a table of differences, whose running sum is grad_x.
#pragma once

#include <limits>

#include "repair.h"
#include "rows.h"
#include "window.h"

namespace talkconv {
namespace {

// first += a * row, second += b * row; the two are the same row where a chunk's edge cut the window.
template <class T, class Width>
inline void add_two(double* first, double a, double* second, double b, const T* __restrict row,
                    Width width) {
  if (first == second) {
    for (int64_t c = 0; c < width; ++c) first[c] += (a + b) * widen(row[c]);
    return;
  }
  double* __restrict one = first;
  double* __restrict two = second;
  for (int64_t c = 0; c < width; ++c) {
    const double value = widen(row[c]);
    one[c] += a * value;
    two[c] += b * value;
  }
}

// One more row of differences becomes a row of the gradient; its place in the ring is free again.
template <class T, class Width>
inline void add_differences(double* __restrict row, double* __restrict running, T* __restrict out,
                            Width width) {
  for (int64_t c = 0; c < width; ++c) {
    running[c] += row[c];
    row[c] = 0;
    out[c] = narrow<T>(Wide<T>(running[c]));
  }
}

// Eight sums side by side in a fixed order: the same bits wherever the rows lie in memory.
template <class T, class Width>
inline double dot(const T* __restrict a, const T* __restrict b, Width width) {
  constexpr int64_t lanes = 8;
  double sums[lanes] = {};
  const int64_t even = width / lanes * lanes;
  for (int64_t c = 0; c < even; c += lanes)
    for (int64_t k = 0; k < lanes; ++k) sums[k] += double(widen(a[c + k])) * double(widen(b[c + k]));
  for (int64_t c = even; c < width; ++c) sums[c - even] += double(widen(a[c])) * double(widen(b[c]));
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

// The derivatives to the offsets: what the token at each edge adds as the edge moves over it.
template <class T>
class OffsetGrads {
 public:
  OffsetGrads(const Plan& plan, const Chunk& chunk, int64_t group, const Heads& heads,
              Rows<const T> x, double* grads)
      : length_(chunk.sequence.length),
        width_(heads.width),
        stride_(plan.heads_per_group * 2),
        left_scale_(plan.problem.scale * double(plan.problem.l_max)),
        right_scale_(plan.problem.scale * double(plan.problem.r_max)),
        x_(x),
        begin_(chunk.begin),
        grads_(grads + (heads.first - group * plan.heads_per_group) * 2) {}

  void add(int64_t token, int64_t head, const Window& w, const T* grad_out) {
    double* const grads = grads_ + (token - begin_) * stride_ + head * 2;
    if (w.is_nan) grads[0] = grads[1] = std::numeric_limits<double>::quiet_NaN();
    const int64_t left_edge = token - w.left.whole - 1, right_edge = token + w.right.whole + 1;
    if (w.left.has_gradient && left_edge >= 0)
      add_dot(grads[0], left_scale_, grad_out, x_[left_edge] + head * width_);
    if (w.right.has_gradient && right_edge < length_)
      add_dot(grads[1], right_scale_, grad_out, x_[right_edge] + head * width_);
  }

  void prefetch(int64_t token, int64_t width) const {
    if (token < length_) prefetch_row(x_[token], width);
  }

 private:
  // piece by piece, so that the sum does not depend on how heads are cut into slices
  void add_dot(double& grad, double scale, const T* a, const T* b) const {
    in_pieces(width_, [&](int64_t c, auto count) { grad += scale * dot(a + c, b + c, count); });
  }

  const int64_t length_, width_, stride_;
  const double left_scale_, right_scale_;
  const Rows<const T> x_;
  const int64_t begin_;
  double* const grads_;
};

// grad_x of one slice over one chunk. Tokens outside the chunk take part where their windows reach
// in; indices are clamped to the chunk, which leaves its running sums right. The chunk's own tokens
// also find their offsets' derivatives, if wanted. Returns false where a sum became NaN or infinite.
template <class T>
bool sweep_backward(const Plan& plan, const talkconv_backward_call& t, const Chunk& chunk, int64_t channel,
                    int64_t width, Rows<const T> grad_out, Rows<T> grad_x,
                    OffsetGrads<T>* offset_grads, double scale_of_nan, bool stream,
                    const Scratch& scratch) {
  const int64_t mask = plan.ring_rows - 1, end = least(chunk.end, chunk.sequence.length);
  if (end <= chunk.begin) return true;
  const Heads heads = heads_of(plan, channel, width);
  const Tokens reached = tokens_reached(chunk, plan.reach_right, plan.reach_left);
  Windows windows(plan, t.left, t.right, chunk.sequence, heads, reached.end);
  const auto differences = [&](int64_t row) {
    return scratch.ring + (least(most(row, chunk.begin), end) & mask) * plan.slice;
  };
  double* const running = scratch.running;
  T* const staged = static_cast<T*>(scratch.staged);
  fill(scratch.ring, plan.ring_rows * plan.slice, 0.0);
  fill(running, width, 0.0);

  const auto finish_row = [&](int64_t j) {
    double* const row = differences(j);
    in_pieces(width, [&](int64_t c, auto count) {
      add_differences(row + c, running + c, staged + c, count);
    });
    write_row(grad_x[j], staged, width * int64_t(sizeof(T)), stream);
  };

  int64_t finished = chunk.begin;
  for (int64_t i = reached.begin; i < reached.end; ++i) {
    const bool owned = offset_grads != nullptr && i >= chunk.begin && i < end;
    if (i + prefetch_distance < reached.end) prefetch_row(grad_out[i + prefetch_distance], width);
    if (owned) offset_grads->prefetch(i + plan.reach_right + prefetch_distance, width);
    windows.move_to(i);
    for (int64_t h = 0; h < heads.count; ++h) {
      const int64_t at = h * heads.width;
      const Window w = windows.window(h);
      const int64_t first = i - w.left.whole, past = i + w.right.whole + 1;
      const double scale = w.is_nan ? scale_of_nan : plan.problem.scale;
      const double before = scale * w.left.part, after = scale * w.right.part;
      const T* const row = grad_out[i] + at;
      in_pieces(heads.width, [&](int64_t c, auto count) {
        add_two(differences(first - 1) + at + c, before, differences(first) + at + c,
                scale - before, row + c, count);
        add_two(differences(past) + at + c, after - scale, differences(past + 1) + at + c, -after,
                row + c, count);
      });
      if (owned) offset_grads->add(i, h, w, row);
    }
    // no later window starts before i - reach_left
    for (; finished < least(i - plan.reach_left, end); ++finished) finish_row(finished);
  }
  for (; finished < end; ++finished) finish_row(finished);
  return all_finite(running, width);
}

inline void store_offset(const talkconv_tensor& offsets, int32_t dtype, int64_t index, double value) {
  switch (dtype) {
    case TALKCONV_F64:
      static_cast<double*>(offsets.data)[index] = value;
      break;
    case TALKCONV_BF16:
      static_cast<bfloat16*>(offsets.data)[index] = narrow<bfloat16>(float(value));
      break;
    case TALKCONV_F16:
      static_cast<float16*>(offsets.data)[index] = narrow<float16>(float(value));
      break;
    default:
      static_cast<float*>(offsets.data)[index] = float(value);
  }
}

inline void write_offset_grads(const Plan& plan, const talkconv_backward_call& t, const Chunk& chunk,
                               int64_t group, const Scratch& scratch) {
  const talkconv_problem& p = plan.problem;
  const int64_t head_begin = group * plan.heads_per_group;
  const int64_t heads = least(plan.heads_per_group, p.heads - head_begin);
  for (int64_t i = chunk.begin; i < chunk.end; ++i) {
    const double* grads = scratch.offset_grads + (i - chunk.begin) * plan.heads_per_group * 2;
    const int64_t left = offset_index(t.grad_left, chunk.sequence, i) + head_begin;
    const int64_t right = offset_index(t.grad_right, chunk.sequence, i) + head_begin;
    for (int64_t h = 0; h < heads; ++h) {
      store_offset(t.grad_left, p.offset_dtype, left + h, grads[2 * h]);
      store_offset(t.grad_right, p.offset_dtype, right + h, grads[2 * h + 1]);
    }
  }
}

// grad_out of the tokens with a NaN offset becomes NaN, as their outputs are.
template <class T>
void spread_nan_offsets(const Plan& plan, const talkconv_backward_call& t, const Sequence& sequence,
                        Tokens tokens, int64_t channel, int64_t width, Rows<T> grad_out) {
  const Heads heads = heads_of(plan, channel, width);
  Windows windows(plan, t.left, t.right, sequence, heads, tokens.end);
  const T nan = narrow<T>(std::numeric_limits<Wide<T>>::quiet_NaN());
  for (int64_t i = tokens.begin; i < tokens.end; ++i) {
    windows.move_to(i);
    for (int64_t h = 0; h < heads.count; ++h)
      if (windows.window(h).is_nan) fill(grad_out[i] + h * heads.width, heads.width, nan);
  }
}

template <class T>
bool repair_backward(const Plan& plan, const talkconv_backward_call& t, const Chunk& chunk, int64_t channel,
                     int64_t width, Rows<const T> grad_out, Rows<T> grad_x, const Scratch& scratch) {
  const Tokens reached = tokens_reached(chunk, plan.reach_right, plan.reach_left);
  const int64_t rows = reached.end - reached.begin;
  T* const memory = static_cast<T*>(std::malloc(size_t(rows * width) * sizeof(T)));
  if (memory == nullptr) return false;
  const Rows<T> copy{memory, width, reached.begin};
  for (int64_t i = reached.begin; i < reached.end; ++i)
    std::memcpy(copy[i], grad_out[i], size_t(width) * sizeof(T));
  spread_nan_offsets<T>(plan, t, chunk.sequence, reached, channel, width, copy);
  const auto sweep = [&](Rows<const T> part, Rows<T> sums) {
    sweep_backward<T>(plan, t, chunk, channel, width, part, sums, nullptr, plan.problem.scale, false,
                      scratch);
  };
  const Rows<const T> input{memory, width, reached.begin};
  const bool ok = repair(chunk, reached, width, input, grad_x, sweep);
  std::free(memory);
  return ok;
}

template <class T>
bool backward_chunk(const Plan& plan, const talkconv_backward_call& t, const Chunk& chunk, int64_t group,
                    const Scratch& scratch) {
  const int64_t group_channels = plan.heads_per_group * plan.channels_per_head;
  const int64_t group_end = least((group + 1) * group_channels, plan.problem.channels);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  bool ok = true;
  fill(scratch.offset_grads, (chunk.end - chunk.begin) * plan.heads_per_group * 2, 0.0);
  for (int64_t c = group * group_channels; c < group_end; c += plan.slice) {
    const int64_t width = least(plan.slice, group_end - c);
    const auto grad_out = rows_of<const T>(t.grad_out, chunk.sequence, c);
    const auto x = rows_of<const T>(t.x, chunk.sequence, c);
    const auto grad_x = rows_of<T>(t.grad_x, chunk.sequence, c);
    OffsetGrads<T> offset_grads(plan, chunk, group, heads_of(plan, c, width), x,
                                scratch.offset_grads);
    if (!sweep_backward<T>(plan, t, chunk, c, width, grad_out, grad_x, &offset_grads, nan,
                           plan.stream, scratch))
      ok = repair_backward<T>(plan, t, chunk, c, width, grad_out, grad_x, scratch) && ok;
    for (int64_t i = most(chunk.begin, chunk.sequence.length); i < chunk.end; ++i)
      std::memset(grad_x[i], 0, size_t(width) * sizeof(T));
  }
  write_offset_grads(plan, t, chunk, group, scratch);
  finish_writing(plan.stream);
  return ok;
}

}  // namespace
}  // namespace talkconv
