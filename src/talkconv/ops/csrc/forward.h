// out[i] = scale * (sum over the window of i), read from running sums.
#pragma once

#include <limits>

#include "repair.h"
#include "rows.h"
#include "window.h"

namespace talkconv {
namespace {

template <class T, class Width>
inline void add_row(const double* __restrict before, const T* __restrict row,
                    double* __restrict after, Width width) {
  for (int64_t c = 0; c < width; ++c) after[c] = before[c] + widen(row[c]);
}

// The sum between two running sums, and the two tokens at the edges that count in part.
template <class T, class Width>
inline void sum_window(const double* __restrict from, const double* __restrict to,
                       const T* __restrict left_edge, const T* __restrict right_edge, Wide<T> scale,
                       Wide<T> left_part, Wide<T> right_part, T* __restrict out, Width width) {
  for (int64_t c = 0; c < width; ++c) {
    const Wide<T> whole = scale * Wide<T>(to[c] - from[c]);
    out[c] = narrow<T>(whole + left_part * widen(left_edge[c]) + right_part * widen(right_edge[c]));
  }
}

// One slice of channels over the tokens of one chunk. Row k of the ring holds the sum of the tokens
// before k, counted from the first token that a window of this chunk can reach: sums start anew with
// each chunk, so their rounding does not grow with the sequence. Returns false where x holds a NaN or
// an infinity, which running sums would carry on past the windows that contain it.
template <class T>
bool sweep_forward(const Plan& plan, const talkconv_forward_call& t, const Chunk& chunk, int64_t channel,
                   int64_t width, Rows<const T> x, Rows<T> out, bool stream,
                   const Scratch& scratch) {
  const int64_t length = chunk.sequence.length, mask = plan.ring_rows - 1;
  const int64_t end = least(chunk.end, length);
  if (end <= chunk.begin) return true;
  const Heads heads = heads_of(plan, channel, width);
  Windows windows(plan, t.left, t.right, chunk.sequence, heads, end);
  const auto ring = [&](int64_t row) { return scratch.ring + (row & mask) * plan.slice; };
  const Wide<T> scale = Wide<T>(plan.problem.scale);
  T* const staged = static_cast<T*>(scratch.staged);

  int64_t summed = most(int64_t{0}, chunk.begin - plan.reach_left);
  fill(ring(summed), width, 0.0);
  for (int64_t i = chunk.begin; i < end; ++i) {
    for (; summed < least(i + plan.reach_right + 1, length); ++summed) {
      if (summed + prefetch_distance < length) prefetch_row(x[summed + prefetch_distance], width);
      const double* const before = ring(summed);
      double* const after = ring(summed + 1);
      in_pieces(width, [&](int64_t c, auto count) {
        add_row(before + c, x[summed] + c, after + c, count);
      });
    }
    windows.move_to(i);
    for (int64_t h = 0; h < heads.count; ++h) {
      const int64_t at = h * heads.width;
      const Window w = windows.window(h);
      const int64_t first = i - w.left.whole, last = i + w.right.whole;
      const bool has_left = first > 0, has_right = last + 1 < length;
      const Wide<T> weight = w.is_nan ? std::numeric_limits<Wide<T>>::quiet_NaN() : scale;
      const double* const from = ring(has_left ? first : 0) + at;
      const double* const to = ring(has_right ? last + 1 : length) + at;
      const T* const left_edge = x[has_left ? first - 1 : i] + at;
      const T* const right_edge = x[has_right ? last + 1 : i] + at;
      const Wide<T> left_part = has_left ? weight * Wide<T>(w.left.part) : 0;
      const Wide<T> right_part = has_right ? weight * Wide<T>(w.right.part) : 0;
      in_pieces(heads.width, [&](int64_t c, auto count) {
        sum_window(from + c, to + c, left_edge + c, right_edge + c, weight, left_part, right_part,
                   staged + at + c, count);
      });
    }
    write_row(out[i], staged, width * int64_t(sizeof(T)), stream);
  }
  return all_finite(ring(summed), width);
}

template <class T>
bool forward_chunk(const Plan& plan, const talkconv_forward_call& t, const Chunk& chunk, int64_t group,
                   const Scratch& scratch) {
  const int64_t group_channels = plan.heads_per_group * plan.channels_per_head;
  const int64_t group_end = least((group + 1) * group_channels, plan.problem.channels);
  bool ok = true;
  for (int64_t c = group * group_channels; c < group_end; c += plan.slice) {
    const int64_t width = least(plan.slice, group_end - c);
    const auto x = rows_of<const T>(t.x, chunk.sequence, c);
    const auto out = rows_of<T>(t.out, chunk.sequence, c, plan.problem.context);
    const bool finite =
        sweep_forward<T>(plan, t, chunk, c, width, x, out, plan.stream, scratch);
    if (!finite) {
      const auto reached = tokens_reached(chunk, plan.reach_left, plan.reach_right);
      const auto sweep = [&](Rows<const T> part, Rows<T> sums) {
        sweep_forward<T>(plan, t, chunk, c, width, part, sums, false, scratch);
      };
      ok = repair(chunk, reached, width, x, out, sweep) && ok;
    }
    for (int64_t i = most(chunk.begin, chunk.sequence.length); i < chunk.end; ++i)
      std::memset(out[i], 0, size_t(width) * sizeof(T));
  }
  finish_writing(plan.stream);
  return ok;
}

}  // namespace
}  // namespace talkconv
