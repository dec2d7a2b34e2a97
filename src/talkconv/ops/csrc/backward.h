// The backward pass. grad_x[j] collects scale * w(i, j) * grad_out[i] from every window i that holds j.
// A window adds its gradient at its first whole token and subtracts it past its last one, in a table of
// differences; the running sum over that table is the gradient of whole tokens. The two edge tokens get
// their weighted gradients directly.
#pragma once

#include <limits>

#include "repair.h"
#include "rows.h"
#include "window.h"

namespace talkconv {
namespace {

// The ring in which the gradients of tokens are collected: the table of differences, with a row for every
// second token, and the gradients of edge tokens. It is all zeros between sweeps.
template <class T>
class GradRing {
 public:
  GradRing(const Plan& plan, const Scratch& scratch)
      : differences_(static_cast<double*>(scratch.ring)),
        edges_(reinterpret_cast<Wide<T>*>(differences_ + plan.sum_rows * plan.slice)),
        stride_(plan.slice) {}

  double* differences(int64_t row) const { return differences_ + row * stride_; }
  Wide<T>* edges(int64_t row) const { return edges_ + row * stride_; }

 private:
  double* const differences_;
  Wide<T>* const edges_;
  const int64_t stride_;
};

template <class T, class Width>
inline void add_window(double* __restrict first, double* __restrict past, const T* __restrict row,
                       Width width) {
  for (int64_t c = 0; c < width; ++c) {
    const double value = widen(row[c]);
    first[c] += value;
    past[c] -= value;
  }
}

template <class T, class Width>
inline void add_edge(Wide<T>* __restrict edge, Wide<T> weight, const T* __restrict row, Width width) {
  for (int64_t c = 0; c < width; ++c) edge[c] += weight * widen(row[c]);
}

// Adds a row of differences to the running sum, at every second token, and clears the row for its next use.
template <class Width>
inline void add_differences(double* __restrict differences, double* __restrict running, Width width) {
  for (int64_t c = 0; c < width; ++c) {
    running[c] += differences[c];
    differences[c] = 0;
  }
}

// Computes a row of the gradient, and clears its place in the ring for its next use.
template <class T, class Width>
inline void finish_row(const double* __restrict running, Wide<T>* __restrict edges, double scale,
                       T* __restrict out, Width width) {
  for (int64_t c = 0; c < width; ++c) {
    out[c] = narrow<T>(Wide<T>(scale * running[c]) + edges[c]);
    edges[c] = 0;
  }
}

// A dot product whose partial sums have a fixed order, so that it gives the same bits wherever the rows
// lie in memory. For float offsets the partial sums A may be floats: each has few terms, and their total is
// taken in double. This needs fused multiply-add, which does not round the products.
template <class A, class T, class Width>
inline double dot(const T* __restrict a, const T* __restrict b, Width width) {
  alignas(64) A sums[lanes] = {};
  const int64_t even = width / lanes * lanes;
  for (int64_t c = 0; c < even; c += lanes)
    for (int64_t k = 0; k < lanes; ++k) sums[k] += A(widen(a[c + k])) * A(widen(b[c + k]));
  for (int64_t c = even; c < width; ++c) sums[c - even] += A(widen(a[c])) * A(widen(b[c]));
  return sum_of_lanes(sums);
}

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
template <class T>
using NarrowSum = Wide<T>;
#else
template <class T>
using NarrowSum = double;
#endif

// The gradients to the offsets: what the token at each edge adds as the edge moves over it.
template <class T>
class OffsetGrads {
 public:
  OffsetGrads(const Plan& plan, const Chunk& chunk, int64_t group, const Heads& heads,
              Rows<const T> x, double* grads)
      : length_(chunk.sequence.length),
        stride_(plan.heads_per_group * 2),
        in_double_(plan.problem.offset_dtype == TALKCONV_F64),
        left_scale_(plan.problem.scale * double(plan.problem.l_max)),
        right_scale_(plan.problem.scale * double(plan.problem.r_max)),
        x_(x),
        begin_(chunk.begin),
        grads_(grads + (heads.first - group * plan.heads_per_group) * 2) {}

  // Adds the gradients of window k from the channels that begin at `at`.
  template <class Width>
  void add(const Windows& windows, int64_t k, int64_t token, int64_t at, const T* grad_out,
           Width width) {
    double* const grads = grads_ + (token - begin_) * stride_ + at / width * 2;
    if (windows.is_nan[k]) grads[0] = grads[1] = std::numeric_limits<double>::quiet_NaN();
    const int64_t left_edge = token - windows.left.whole[k] - 1;
    const int64_t right_edge = token + windows.right.whole[k] + 1;
    if (windows.left.has_gradient[k] && left_edge >= 0)
      grads[0] += left_scale_ * product(grad_out, x_[left_edge] + at, width);
    if (windows.right.has_gradient[k] && right_edge < length_)
      grads[1] += right_scale_ * product(grad_out, x_[right_edge] + at, width);
  }

  // Prefetches the rows of x that this token's windows may need soon.
  template <class Width>
  void prefetch(int64_t token, int64_t reach_right, Width width) const {
    prefetch_ahead(x_, token + reach_right, length_, width);
  }

 private:
  template <class Width>
  double product(const T* a, const T* b, Width width) const {
    return in_double_ ? dot<double>(a, b, width) : dot<NarrowSum<T>>(a, b, width);
  }

  const int64_t length_, stride_;
  const bool in_double_;
  const double left_scale_, right_scale_;
  const Rows<const T> x_;
  const int64_t begin_;
  double* const grads_;
};

// Computes grad_x of one slice over one chunk, and the gradients to the offsets of the chunk's own tokens
// if they are wanted. Tokens outside the chunk add to it where their windows reach into it. Returns false
// if a sum became NaN or infinite, or if an offset is NaN.
template <class T, class Width, class HeadWidth>
bool sweep_backward(const Plan& plan, const Chunk& chunk, Windows& windows, Width width,
                    HeadWidth head_width, Rows<const T> grad_out, Rows<T> grad_x,
                    OffsetGrads<T>* offset_grads, bool stream, const Scratch& scratch) {
  const int64_t rows = plan.ring_rows, sum_rows = plan.sum_rows;
  const int64_t end = least(chunk.end, chunk.sequence.length);
  const int64_t reach_left = plan.reach_left, reach_right = plan.reach_right;
  const Tokens reached = tokens_reached(chunk, reach_right, reach_left);
  const GradRing<T> ring(plan, scratch);
  const double scale = plan.problem.scale;
  double* const running = scratch.running;
  alignas(cache_line) T staged[most_slice];
  fill(running, width, 0.0);
  Terms<T> terms;
  bool any_nan = false;

  // the next token to finish, and its rows in the two parts of the ring
  int64_t finished = chunk.begin, oldest = 0, oldest_sum = 0;
  const auto finish_until = [&](int64_t token) {
    for (; finished < token; ++finished) {
      const bool even = (finished - chunk.begin) % 2 == 0;
      in_pieces(width, [&](int64_t c, auto count) {
        if (even) add_differences(ring.differences(oldest_sum) + c, running + c, count);
        finish_row(running + c, ring.edges(oldest) + c, scale, staged + c, count);
      });
      if (even) oldest_sum = oldest_sum + 1 == sum_rows ? 0 : oldest_sum + 1;
      // Rows are staged: loads of grad_out and x would wait for stores to addresses that agree with
      // theirs in the last 12 bits, which took a tenth of the time at 10 tokens.
      write_row(grad_x[finished], staged, width * int64_t(sizeof(T)), stream);
      oldest = oldest + 1 == rows ? 0 : oldest + 1;
    }
  };

  for (int64_t i = reached.begin; i < reached.end; i += windows.tokens) {
    windows.work_out(i, reached.end, rows);
    // the chunk's first token has row 0, and tokens before it have negative rows
    terms.find(windows, chunk.begin, end, i - chunk.begin, sum_rows, scale, Wide<T>(scale));
    const int32_t own = int32_t((i - chunk.begin) % rows);
    const auto edges_of = [&](int32_t token) { return ring.edges(wrapped(own + token, int32_t(rows))); };
    const T* row = grad_out[i];
    int64_t k = 0;
    for (int64_t token = i; token < i + windows.tokens; ++token, row += grad_out.stride) {
      const bool owned = offset_grads != nullptr && token >= chunk.begin && token < end;
      prefetch_ahead(grad_out, token, reached.end, width);
      if (owned) offset_grads->prefetch(token, reach_right, width);
      for (int64_t at = 0; at < width; at += head_width, ++k) {
        if (terms.first[k] != terms.past[k])
          add_window(ring.differences(terms.first[k]) + at, ring.differences(terms.past[k]) + at,
                     row + at, head_width);
        if (terms.left[k] != 0)
          add_edge<T>(edges_of(terms.left_token[k]) + at, terms.left[k], row + at, head_width);
        if (terms.right[k] != 0)
          add_edge<T>(edges_of(terms.right_token[k]) + at, terms.right[k], row + at, head_width);
        any_nan |= windows.is_nan[k] != 0;
        if (owned) offset_grads->add(windows, k, token, at, row + at, head_width);
      }
      // no later window can reach farther back than the windows of this token
      finish_until(least(token - reach_left + 1, end));
    }
  }
  finish_until(end);
  // windows that end with the chunk were subtracted past its last token, in a row that is not finished
  fill(ring.differences(oldest_sum), width, 0.0);
  return !any_nan && all_finite(running, width);
}

template <class T>
bool sweep_slice(const Plan& plan, const BackwardTensors& t, const Chunk& chunk, int64_t channel,
                 int64_t width, Rows<const T> grad_out, Rows<T> grad_x,
                 OffsetGrads<T>* offset_grads, bool stream, const Scratch& scratch) {
  if (least(chunk.end, chunk.sequence.length) <= chunk.begin) return true;
  const Heads heads = heads_of(plan, channel, width);
  Windows windows(plan, t.left, t.right, chunk.sequence, heads);
  return with_known_widths(heads, width, [&](auto known_width, auto head_width) {
    return sweep_backward(plan, chunk, windows, known_width, head_width, grad_out, grad_x,
                          offset_grads, stream, scratch);
  });
}

template <class O>
void write_offset_grads_as(const Plan& plan, const BackwardTensors& t, const Chunk& chunk,
                           int64_t group, const Scratch& scratch) {
  const int64_t first = group * plan.heads_per_group;
  const int64_t heads = least(plan.heads_per_group, plan.problem.heads - first);
  const double* grads = scratch.offset_grads;
  O* left = static_cast<O*>(t.grad_left.data) + offset_index(t.grad_left, chunk.sequence, chunk.begin);
  O* right = static_cast<O*>(t.grad_right.data) + offset_index(t.grad_right, chunk.sequence, chunk.begin);
  for (int64_t i = chunk.begin; i < chunk.end; ++i) {
    for (int64_t h = 0; h < heads; ++h) {
      left[first + h] = narrow<O>(Wide<O>(grads[2 * h]));
      right[first + h] = narrow<O>(Wide<O>(grads[2 * h + 1]));
    }
    grads += plan.heads_per_group * 2;
    left += t.grad_left.strides.time;
    right += t.grad_right.strides.time;
  }
}

inline void write_offset_grads(const Plan& plan, const BackwardTensors& t, const Chunk& chunk,
                               int64_t group, const Scratch& scratch) {
  switch (plan.problem.offset_dtype) {
    case TALKCONV_F64:
      return write_offset_grads_as<double>(plan, t, chunk, group, scratch);
    case TALKCONV_BF16:
      return write_offset_grads_as<bfloat16>(plan, t, chunk, group, scratch);
    case TALKCONV_F16:
      return write_offset_grads_as<float16>(plan, t, chunk, group, scratch);
    default:
      return write_offset_grads_as<float>(plan, t, chunk, group, scratch);
  }
}

// Sets grad_out to NaN for tokens with a NaN offset, as their outputs are NaN.
template <class T>
void spread_nan_offsets(const Plan& plan, const BackwardTensors& t, const Sequence& sequence,
                        Tokens tokens, int64_t channel, int64_t width, Rows<T> grad_out) {
  const Heads heads = heads_of(plan, channel, width);
  Windows windows(plan, t.left, t.right, sequence, heads);
  const T nan = narrow<T>(std::numeric_limits<Wide<T>>::quiet_NaN());
  for (int64_t i = tokens.begin; i < tokens.end; i += windows.tokens) {
    windows.work_out(i, tokens.end, Windows::capacity);
    for (int64_t k = 0; k < windows.count; ++k)
      if (windows.is_nan[k])
        fill(grad_out[i + windows.token[k]] + k % heads.count * heads.width, heads.width, nan);
  }
}

template <class T>
bool repair_backward(const Plan& plan, const BackwardTensors& t, const Chunk& chunk, int64_t channel,
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
    sweep_slice<T>(plan, t, chunk, channel, width, part, sums, nullptr, false, scratch);
  };
  const Rows<const T> input{memory, width, reached.begin};
  const bool ok = repair(chunk, reached, width, input, grad_x, sweep);
  std::free(memory);
  return ok;
}

template <class T>
bool backward_chunk(const Plan& plan, const BackwardTensors& t, const Chunk& chunk, int64_t group,
                    const Scratch& scratch) {
  const int64_t group_channels = plan.heads_per_group * plan.channels_per_head;
  const int64_t group_end = least((group + 1) * group_channels, plan.problem.channels);
  bool ok = true;
  fill(scratch.offset_grads, (chunk.end - chunk.begin) * plan.heads_per_group * 2, 0.0);
  for (int64_t c = group * group_channels; c < group_end; c += plan.slice) {
    const int64_t width = least(plan.slice, group_end - c);
    const auto grad_out = rows_of<const T>(t.grad_out, chunk.sequence, c);
    const auto x = rows_of<const T>(t.x, chunk.sequence, c);
    const auto grad_x = rows_of<T>(t.grad_x, chunk.sequence, c);
    OffsetGrads<T> offset_grads(plan, chunk, group, heads_of(plan, c, width), x,
                                scratch.offset_grads);
    if (!sweep_slice(plan, t, chunk, c, width, grad_out, grad_x, &offset_grads, plan.stream,
                             scratch))
      ok = repair_backward<T>(plan, t, chunk, c, width, grad_out, grad_x, scratch) && ok;
    for (int64_t i = most(chunk.begin, chunk.sequence.length); i < chunk.end; ++i)
      std::memset(grad_x[i], 0, size_t(width) * sizeof(T));
  }
  write_offset_grads(plan, t, chunk, group, scratch);
  return ok;
}

}  // namespace
}  // namespace talkconv
