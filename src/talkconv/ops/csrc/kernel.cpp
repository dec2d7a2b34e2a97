// The kernels of one instruction set; this file is compiled once for each, and TALKCONV_KERNEL names the
// result. Everything in the included headers has internal linkage, because the linker must never mix code
// of two instruction sets.
#include "backward.h"
#include "dropout.h"
#include "forward.h"

namespace talkconv {
namespace {

bool forward(const Plan& plan, const ForwardTensors& tensors,
             const Chunk& chunk, int64_t group, const Scratch& scratch) {
  switch (plan.problem.dtype) {
    case TALKCONV_F64:
      return forward_chunk<double>(plan, tensors, chunk, group, scratch);
    case TALKCONV_BF16:
      return forward_chunk<bfloat16>(plan, tensors, chunk, group, scratch);
    case TALKCONV_F16:
      return forward_chunk<float16>(plan, tensors, chunk, group, scratch);
    default:
      return forward_chunk<float>(plan, tensors, chunk, group, scratch);
  }
}

bool backward(const Plan& plan, const BackwardTensors& tensors,
              const Chunk& chunk, int64_t group, const Scratch& scratch) {
  switch (plan.problem.dtype) {
    case TALKCONV_F64:
      return backward_chunk<double>(plan, tensors, chunk, group, scratch);
    case TALKCONV_BF16:
      return backward_chunk<bfloat16>(plan, tensors, chunk, group, scratch);
    case TALKCONV_F16:
      return backward_chunk<float16>(plan, tensors, chunk, group, scratch);
    default:
      return backward_chunk<float>(plan, tensors, chunk, group, scratch);
  }
}

void dropout(const talkconv_dropout_call& call, const void* x, void* out, int64_t first_block,
             int64_t end_block) {
  switch (call.dtype) {
    case TALKCONV_F64:
      return dropout_blocks<double>(call, x, out, first_block, end_block);
    case TALKCONV_BF16:
      return dropout_blocks<bfloat16>(call, x, out, first_block, end_block);
    case TALKCONV_F16:
      return dropout_blocks<float16>(call, x, out, first_block, end_block);
    default:
      return dropout_blocks<float>(call, x, out, first_block, end_block);
  }
}

}  // namespace
}  // namespace talkconv

#define TALKCONV_NAME_OF(isa) #isa
#define TALKCONV_NAME(isa) TALKCONV_NAME_OF(isa)
#define TALKCONV_KERNEL_OF(isa) kernel_##isa
#define TALKCONV_KERNEL(isa) TALKCONV_KERNEL_OF(isa)

namespace talkconv {
const Kernel TALKCONV_KERNEL(TALKCONV_ISA) = {TALKCONV_NAME(TALKCONV_ISA), forward, backward,
                                               dropout};
}
