// The forward pass: out[i] = scale * (sum over the window of i), read from running sums.
#pragma once

#include <limits>

#include "repair.h"
#include "rows.h"
#include "window.h"

namespace talkconv {
namespace {

template <class T, class Width>
inline void add_pair(const double* __restrict before, const T* __restrict one, const T* __restrict two,
                     double* __restrict after, Width width) {
  for (int64_t c = 0; c < width; ++c)
    after[c] = before[c] + (double(widen(one[c])) + double(widen(two[c])));
}

// Adds the difference of two running sums and the two weighted edge tokens.
template <class T, class Width>
inline void sum_window(const double* __restrict from, const double* __restrict to,
                       const T* __restrict left_edge, const T* __restrict right_edge, Wide<T> scale,
                       Wide<T> left, Wide<T> right, T* __restrict out, Width width) {
  for (int64_t c = 0; c < width; ++c) {
    const Wide<T> whole = scale * Wide<T>(to[c] - from[c]);
    out[c] = narrow<T>(whole + left * widen(left_edge[c]) + right * widen(right_edge[c]));
  }
}

// The running sums that windows are read from. There is one for every second token, so the ring is half
// as large and more of it stays in the first-level cache. Sums start anew with each chunk, at the first
// token that one of its windows can reach (the origin), so rounding does not grow with the sequence.
template <class Width>
class RunningSums {
 public:
  RunningSums(const Plan& plan, Width width, const Scratch& scratch)
      : sums_(static_cast<double*>(scratch.ring)),
        rows_(plan.sum_rows),
        stride_(plan.slice),
        width_(width) {
    fill(sums_, width, 0.0);
  }

  double* operator[](int64_t row) const { return sums_ + row * stride_; }
  const double* newest() const { return (*this)[newest_]; }

  template <class T>
  void add(const T* one, const T* two) {
    const int64_t next = newest_ + 1 == rows_ ? 0 : newest_ + 1;
    const double* const before = (*this)[newest_];
    double* const after = (*this)[next];
    in_pieces(width_, [&](int64_t c, auto count) {
      add_pair(before + c, one + c, two + c, after + c, count);
    });
    newest_ = next;
  }

 private:
  double* const sums_;
  const int64_t rows_, stride_;
  const Width width_;
  int64_t newest_ = 0;
};

// Computes one slice of channels over the tokens of one chunk. Returns false if x holds a NaN or an
// infinity, because running sums carry these past the windows that contain them.
template <class T, class Width, class HeadWidth>
bool sweep_forward(const Plan& plan, const Chunk& chunk, Windows& windows, Width width,
                   HeadWidth head_width, Rows<const T> x, Rows<T> out, bool stream,
                   const Scratch& scratch) {
  const int64_t length = chunk.sequence.length, end = least(chunk.end, length);
  const int64_t rows = plan.sum_rows, reach_right = plan.reach_right;
  alignas(cache_line) T staged[most_slice];
  RunningSums<Width> sums(plan, width, scratch);
  Terms<T> terms;

  const int64_t origin = most(int64_t{0}, chunk.begin - plan.reach_left);
  int64_t summed = origin;
  const T* row = x[summed];
  for (int64_t i = chunk.begin; i < end; i += windows.tokens) {
    windows.work_out(i, end, 2 * rows);
    terms.find(windows, 0, length, i - origin, rows, plan.problem.scale,
               std::numeric_limits<Wide<T>>::quiet_NaN());
    const Rows<const T> tokens{x[i], x.stride, 0};
    T* out_row = out[i];
    int64_t k = 0;
    for (int64_t token = i; token < i + windows.tokens; ++token, out_row += out.stride) {
      const int64_t needed = least(token + reach_right + 1, length - 1);
      for (; summed < needed; summed += 2, row += 2 * x.stride) {
        prefetch_ahead(x, summed, length, width);
        prefetch_ahead(x, summed + 1, length, width);
        sums.add(row, row + x.stride);
      }
      T* const to = stream ? staged : out_row;
      for (int64_t at = 0; at < width; at += head_width, ++k) {
        sum_window(sums[terms.first[k]] + at, sums[terms.past[k]] + at,
                   tokens[terms.left_token[k]] + at, tokens[terms.right_token[k]] + at,
                   terms.whole[k], terms.left[k], terms.right[k], to + at, head_width);
      }
      if (stream) stream_row(out_row, staged, width * int64_t(sizeof(T)));
    }
  }
  // with an odd number of tokens, the last one is in no sum and only at edges
  return all_finite(sums.newest(), width) && (summed + 1 != length || all_finite(row, width));
}

template <class T>
bool sweep_slice(const Plan& plan, const ForwardTensors& t, const Chunk& chunk, int64_t channel,
                 int64_t width, Rows<const T> x, Rows<T> out, bool stream, const Scratch& scratch) {
  if (least(chunk.end, chunk.sequence.length) <= chunk.begin) return true;
  const Heads heads = heads_of(plan, channel, width);
  Windows windows(plan, t.left, t.right, chunk.sequence, heads);
  return with_known_widths(heads, width, [&](auto known_width, auto head_width) {
    return sweep_forward(plan, chunk, windows, known_width, head_width, x, out, stream, scratch);
  });
}

template <class T>
bool forward_chunk(const Plan& plan, const ForwardTensors& t, const Chunk& chunk, int64_t group,
                   const Scratch& scratch) {
  const int64_t group_channels = plan.heads_per_group * plan.channels_per_head;
  const int64_t group_end = least((group + 1) * group_channels, plan.problem.channels);
  bool ok = true;
  for (int64_t c = group * group_channels; c < group_end; c += plan.slice) {
    const int64_t width = least(plan.slice, group_end - c);
    const auto x = rows_of<const T>(t.x, chunk.sequence, c);
    const auto out = rows_of<T>(t.out, chunk.sequence, c, plan.problem.context);
    if (!sweep_slice(plan, t, chunk, c, width, x, out, plan.stream, scratch)) {
      const auto reached = tokens_reached(chunk, plan.reach_left, plan.reach_right);
      const auto sweep = [&](Rows<const T> part, Rows<T> sums) {
        sweep_slice(plan, t, chunk, c, width, part, sums, false, scratch);
      };
      ok = repair(chunk, reached, width, x, out, sweep) && ok;
    }
    for (int64_t i = most(chunk.begin, chunk.sequence.length); i < chunk.end; ++i)
      std::memset(out[i], 0, size_t(width) * sizeof(T));
  }
  return ok;
}

}  // namespace
}  // namespace talkconv
