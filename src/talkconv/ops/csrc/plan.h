// How a call is divided into tasks. A task owns the tokens of one chunk of one sequence and the channels of
// one group of heads. No other task writes there, so results do not depend on the number of threads.
#pragma once

#include <cstdint>

#include "api.h"

namespace talkconv {

// (batch, time, last)
struct Tensor {
  void* data;
  talkconv_strides strides;
};

struct ForwardTensors {
  Tensor x, left, right, out;
};

struct BackwardTensors {
  Tensor grad_out, x, left, right, grad_x, grad_left, grad_right;
};

// One sequence inside its tensors.
struct Sequence {
  int64_t batch;   // row of the batch dimension
  int64_t first;   // its first token in the time dimension
  int64_t length;  // tokens that exist
};

struct Chunk {
  Sequence sequence;
  int64_t begin;     // tokens begin .. end - 1 of the sequence, padding included
  int64_t end;
  int64_t rows_before;  // rows in all chunks before this one, to balance the threads
};

// So many windows are computed at a time; a slice has at most as many heads.
constexpr int64_t most_windows = 64;
constexpr int64_t most_slice = 256;  // channels
constexpr int64_t cache_line = 64;
// Dropout draws its decisions in blocks of this many elements; threads take whole blocks.
constexpr int64_t dropout_block = 4096;

struct Plan {
  talkconv_problem problem;
  int64_t channels_per_head;
  int64_t heads_per_group;
  int64_t groups;
  int64_t slice;      // the most channels of one sweep over time
  int64_t reach_left;   // no window reaches farther, in whole tokens
  int64_t reach_right;
  int64_t ring_rows;  // rows that windows can reach at a time
  int64_t sum_rows;   // rows of running sums, one for two tokens
  int64_t chunk_tokens;
  bool stream;  // the output does not fit the caches: write around them
};

// A row of the ring has at most two doubles for each channel.
inline int64_t ring_row_bytes(const Plan& plan) {
  return plan.slice * 2 * int64_t(sizeof(double));
}

// Working memory of one thread, allocated once per call.
struct Scratch {
  void* ring;            // ring_rows rows of ring_row_bytes() at most
  double* running;       // (slice,)
  double* offset_grads;  // (chunk_tokens, heads_per_group, 2); backward only
};

// The sweeps, compiled once per instruction set.
struct Kernel {
  const char* isa;
  // both return false if memory ran out
  bool (*forward)(const Plan&, const ForwardTensors&, const Chunk&, int64_t group, const Scratch&);
  bool (*backward)(const Plan&, const BackwardTensors&, const Chunk&, int64_t group,
                   const Scratch&);
  void (*dropout)(const talkconv_dropout_call&, const void* x, void* out, int64_t first_block,
                  int64_t end_block);
};

extern const Kernel kernel_portable;
extern const Kernel kernel_avx2;
extern const Kernel kernel_avx512;

}  // namespace talkconv
