// Plans a call, distributes its tasks over threads, and picks the instruction set. This file is compiled for
// the baseline processor; the inner loops are in kernel.cpp.
#include "api.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <iterator>
#include <new>
#include <vector>

#if defined(__SSE__) || defined(_M_X64)
#include <xmmintrin.h>
#endif

#include "parallel.h"
#include "plan.h"
#include "processor.h"

namespace talkconv {
namespace {

// A slice has this many channels if its ring then fills its part of the first-level cache, and twice or four
// times as many if sequences or windows are short. The rest of the cache is for rows of x.
constexpr int64_t least_slice = 64;
constexpr int64_t ring_bytes = int64_t{24} << 10;
// Windows are computed for a few tokens at a time, at most as many as the ring has rows.
constexpr int64_t least_ring_rows = 16;
// Chunks are long, so that few tokens are read twice at their borders, and short enough that several
// threads can share one sequence.
constexpr int64_t least_chunk_tokens = 512;
// Larger outputs do not stay in the second-level caches of common processors.
constexpr int64_t stream_from_bytes = int64_t{2} << 20;
// Below this many elements a thread takes longer to wake than to help.
constexpr int64_t elements_per_thread = int64_t{1} << 14;

int64_t element_bytes(int32_t dtype) {
  return dtype == TALKCONV_F64 ? 8 : dtype == TALKCONV_F32 ? 4 : 2;
}

int64_t reach_in_tokens(int64_t max_tokens, double max_offset) {
  // the bound is longer than any sequence and cannot overflow
  return int64_t(std::min(std::ceil(double(max_tokens) * max_offset), 0x1p30));
}

int64_t rounded_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::vector<Chunk> chunks_of(const talkconv_problem& p, int64_t chunk_tokens) {
  std::vector<Chunk> chunks;
  int64_t rows = 0;
  for (int64_t s = 0; s < p.sequences; ++s) {
    const bool packed = p.cu_seqlens != nullptr;
    const int64_t tokens = packed ? p.cu_seqlens[s + 1] - p.cu_seqlens[s] : p.tokens;
    const int64_t length = p.lengths != nullptr ? p.lengths[s] : tokens;
    const Sequence sequence{packed ? 0 : s, packed ? p.cu_seqlens[s] : 0, length};
    for (int64_t begin = p.context; begin < tokens; begin += chunk_tokens) {
      const int64_t end = std::min(begin + chunk_tokens, tokens);
      chunks.push_back({sequence, begin, end, rows});
      rows += end - begin;
    }
  }
  return chunks;
}

int64_t longest_of(const std::vector<Chunk>& chunks) {
  int64_t longest = 1;
  for (const Chunk& chunk : chunks) longest = std::max(longest, chunk.end);
  return longest;
}

// Chunks depend on the windows alone and never on the batch, so equal sequences give equal bits.
int64_t widest_window(const talkconv_problem& p) {
  return reach_in_tokens(p.l_max, p.max_offset) + reach_in_tokens(p.r_max, p.max_offset) + 1;
}

int64_t chunk_tokens_of(const talkconv_problem& p) {
  return std::max(least_chunk_tokens, 4 * widest_window(p));
}

Plan plan_of(const talkconv_problem& p, const std::vector<Chunk>& chunks) {
  Plan plan{};
  plan.problem = p;
  const int64_t longest = longest_of(chunks);
  plan.reach_left = std::min(reach_in_tokens(p.l_max, p.max_offset), longest);
  plan.reach_right = std::min(reach_in_tokens(p.r_max, p.max_offset), longest);
  plan.ring_rows = std::max(plan.reach_left + plan.reach_right + 2, least_ring_rows);
  plan.sum_rows = plan.ring_rows / 2 + 2;
  const int64_t row_bytes = ring_bytes / std::min(plan.ring_rows, longest + 1);
  int64_t slice = most_slice;
  while (slice > least_slice && slice * int64_t(sizeof(double)) > row_bytes) slice /= 2;
  plan.channels_per_head = p.channels / p.heads;
  plan.heads_per_group =
      std::clamp<int64_t>(slice / plan.channels_per_head, 1, std::min(p.heads, most_windows));
  plan.groups = (p.heads + plan.heads_per_group - 1) / plan.heads_per_group;
  plan.slice = std::min(slice, plan.heads_per_group * plan.channels_per_head);
  plan.chunk_tokens = std::min(chunk_tokens_of(p), longest);
  const int64_t rows = chunks.empty() ? 0 : chunks.back().rows_before + chunks.back().end -
                                                chunks.back().begin;
  plan.stream = rows * p.channels * element_bytes(p.dtype) >= stream_from_bytes;
  return plan;
}

// The memory of one thread's Scratch, in one block. It is kept from call to call unless it is large,
// because allocating it would dominate a short call.
class ScratchMemory {
 public:
  ScratchMemory() = default;
  ScratchMemory(const ScratchMemory&) = delete;
  ScratchMemory& operator=(const ScratchMemory&) = delete;
  ~ScratchMemory() { release(); }

  // Returns false if memory ran out.
  bool reserve(const Plan& plan, bool offset_grads) {
    const int64_t pair_bytes = 2 * int64_t(sizeof(double));
    const int64_t grad_bytes = plan.chunk_tokens * plan.heads_per_group * pair_bytes;
    const int64_t sizes[] = {plan.ring_rows * ring_row_bytes(plan), row, offset_grads ? grad_bytes : 0};
    int64_t begins[std::size(sizes)], bytes = 0;
    for (size_t k = 0; k < std::size(sizes); ++k) {
      begins[k] = bytes;
      bytes += rounded_up(sizes[k], cache_line);
    }
    if (bytes > bytes_) {
      release();
      memory_ = static_cast<char*>(::operator new(size_t(bytes), alignment, std::nothrow));
      if (memory_ == nullptr) return false;
      bytes_ = bytes;
    }
    // the backward expects a ring of zeros
    if (offset_grads) std::memset(memory_, 0, size_t(sizes[0]));
    scratch_ = {memory_ + begins[0], reinterpret_cast<double*>(memory_ + begins[1]),
                reinterpret_cast<double*>(memory_ + begins[2])};
    return true;
  }

  void release_if_large() {
    if (bytes_ > kept_bytes) release();
  }

  const Scratch& operator*() const { return scratch_; }

 private:
  static constexpr std::align_val_t alignment{cache_line};
  static constexpr int64_t row = most_slice * int64_t(sizeof(double));
  static constexpr int64_t kept_bytes = int64_t{1} << 20;

  void release() {
    ::operator delete(memory_, alignment);
    memory_ = nullptr;
    bytes_ = 0;
  }

  char* memory_ = nullptr;
  int64_t bytes_ = 0;
  Scratch scratch_{};
};

// Every thread takes one contiguous run of tasks with about the same number of rows. With single tasks in
// turn, two threads would often write to one page of new memory at the same time, and the operating system
// would clear the page twice.
struct Task {
  size_t chunk;
  int64_t group;
};

Task first_task_of(const std::vector<Chunk>& chunks, int64_t groups, int64_t part, int64_t parts) {
  const Chunk& last = chunks.back();
  const int64_t rows = last.rows_before + last.end - last.begin;
  const int64_t target = rows * groups / parts * part;  // in rows of one group
  const auto after = std::upper_bound(chunks.begin(), chunks.end(), target / groups,
                                      [](int64_t row, const Chunk& c) { return row < c.rows_before; });
  const auto chunk = after - 1;
  const int64_t done = target - chunk->rows_before * groups;
  return {size_t(chunk - chunks.begin()), done / (chunk->end - chunk->begin)};
}

// Makes rows that were streamed around the caches visible to other threads.
void finish_streaming() {
#if defined(__SSE__) || defined(_M_X64)
  _mm_sfence();
#endif
}

template <class Run>
int32_t run_all(const Plan& plan, const std::vector<Chunk>& chunks, bool offset_grads, Run run) {
  if (chunks.empty() || plan.problem.channels == 0) return TALKCONV_OK;
  const int64_t rows = chunks.back().rows_before + chunks.back().end - chunks.back().begin;
  const int64_t useful = std::max<int64_t>(1, rows * plan.problem.channels / elements_per_thread);
  const int64_t tasks = int64_t(chunks.size()) * plan.groups;
  const int64_t threads = std::min({int64_t(plan.problem.threads), useful, tasks});
  std::atomic<bool> ok{true};
  parallel(int(threads), [&](int thread, int count) {
    static thread_local ScratchMemory scratch;
    if (!scratch.reserve(plan, offset_grads)) {
      ok = false;
      return;
    }
    Task task = first_task_of(chunks, plan.groups, thread, count);
    const Task end = thread + 1 < count ? first_task_of(chunks, plan.groups, thread + 1, count)
                                        : Task{chunks.size(), 0};
    while (task.chunk < end.chunk || (task.chunk == end.chunk && task.group < end.group)) {
      const Chunk& chunk = chunks[task.chunk];
      if (!run(chunk, task.group, *scratch)) ok = false;
      if (++task.group == plan.groups) task = {task.chunk + 1, 0};
    }
    if (plan.stream) finish_streaming();
    scratch.release_if_large();
  });
  return ok ? TALKCONV_OK : TALKCONV_OUT_OF_MEMORY;
}

std::vector<const Kernel*> available_kernels() {
  std::vector<const Kernel*> kernels;
#if defined(TALKCONV_WITH_AVX512)
  if (processor_has_avx512()) kernels.push_back(&kernel_avx512);
#endif
#if defined(TALKCONV_WITH_AVX2)
  if (processor_has_avx2()) kernels.push_back(&kernel_avx2);
#endif
  kernels.push_back(&kernel_portable);
  return kernels;
}

const std::vector<const Kernel*>& kernels() {
  static const std::vector<const Kernel*> all = available_kernels();
  return all;
}

std::atomic<const Kernel*>& current() {
  static std::atomic<const Kernel*> kernel{kernels().front()};
  return kernel;
}

// Plans the call and runs it. `sweep` is the kernel's forward or backward.
template <class Sweep, class Tensors>
int32_t run_call(const talkconv_problem& problem, Sweep Kernel::*sweep, const Tensors& tensors,
                 bool offset_grads) {
  try {
    const std::vector<Chunk> chunks = chunks_of(problem, chunk_tokens_of(problem));
    const Plan plan = plan_of(problem, chunks);
    const Sweep run = current().load()->*sweep;
    return run_all(plan, chunks, offset_grads,
                   [&](const Chunk& chunk, int64_t group, const Scratch& scratch) {
                     return run(plan, tensors, chunk, group, scratch);
                   });
  } catch (const std::bad_alloc&) {
    // no exception may cross the C interface; memory is all that can run out here
    return TALKCONV_OUT_OF_MEMORY;
  }
}

}  // namespace
}  // namespace talkconv

using namespace talkconv;

int32_t talkconv_forward(const talkconv_forward_call* call, void* const* data) {
  const ForwardTensors tensors{
      {data[0], call->x}, {data[1], call->left}, {data[2], call->right}, {data[3], call->out}};
  return run_call(call->problem, &Kernel::forward, tensors, false);
}

int32_t talkconv_backward(const talkconv_backward_call* call, void* const* data) {
  const BackwardTensors tensors{
      {data[0], call->grad_out}, {data[1], call->x},         {data[2], call->left},
      {data[3], call->right},    {data[4], call->grad_x},    {data[5], call->grad_left},
      {data[6], call->grad_right}};
  return run_call(call->problem, &Kernel::backward, tensors, true);
}

void talkconv_dropout(const talkconv_dropout_call* call, const void* x, void* out) {
  const Kernel& kernel = *current().load();
  const int64_t blocks = (call->elements + dropout_block - 1) / dropout_block;
  const int64_t useful = std::max<int64_t>(1, call->elements / elements_per_thread);
  parallel(int(std::min<int64_t>(call->threads, useful)), [&](int thread, int count) {
    kernel.dropout(*call, x, out, blocks * thread / count, blocks * (thread + 1) / count);
  });
}

const char* talkconv_isa(void) { return current().load()->isa; }

const char* talkconv_isa_at(int32_t index) {
  return index >= 0 && size_t(index) < kernels().size() ? kernels()[size_t(index)]->isa : nullptr;
}

int32_t talkconv_use_isa(const char* name) {
  for (const Kernel* kernel : kernels()) {
    if (std::strcmp(kernel->isa, name) == 0) {
      current() = kernel;
      return 1;
    }
  }
  return 0;
}
