// The plain C interface that Python loads with ctypes. It is built without PyTorch's headers, so one
// library works with every PyTorch. library.py packs these structs field by field.
#pragma once

#include <stdint.h>

#if defined(_WIN32)
#define TALKCONV_EXPORT __declspec(dllexport)
#else
#define TALKCONV_EXPORT __attribute__((visibility("default")))
#endif

extern "C" {

enum talkconv_dtype { TALKCONV_F32 = 0, TALKCONV_F64 = 1, TALKCONV_BF16 = 2, TALKCONV_F16 = 3 };

enum talkconv_status { TALKCONV_OK = 0, TALKCONV_OUT_OF_MEMORY = 1 };

// The strides of a tensor (batch, time, last) in elements; its last dimension is contiguous.
typedef struct {
  int64_t batch;
  int64_t time;
} talkconv_strides;

typedef struct {
  int64_t sequences;
  int64_t tokens;   // T of a padded batch; unused when packed
  int64_t context;  // leading tokens of x that have neither offsets nor outputs (decoding steps)
  int64_t channels;
  int64_t heads;
  int64_t l_max;
  int64_t r_max;
  double max_offset;
  double scale;
  const int64_t* lengths;     // (sequences,) or null
  const int64_t* cu_seqlens;  // (sequences + 1,) or null; not null means packed
  int32_t dtype;              // of x, the output and their gradients
  int32_t offset_dtype;       // of left, right and their gradients
  int32_t threads;
  int32_t unused;  // keeps what follows aligned
} talkconv_problem;

typedef struct {
  talkconv_problem problem;
  talkconv_strides x, left, right, out;
} talkconv_forward_call;

typedef struct {
  talkconv_problem problem;
  talkconv_strides grad_out, x, left, right, grad_x, grad_left, grad_right;
} talkconv_backward_call;

typedef struct {
  int64_t elements;
  uint64_t seed;
  double probability;  // that an element is dropped, in [0, 1)
  int32_t dtype;
  int32_t threads;
} talkconv_dropout_call;

// `data` holds the addresses of the tensors in the order of their strides. Both return a talkconv_status.
// left is not read if l_max is 0, and right is not read if r_max is 0.
TALKCONV_EXPORT int32_t talkconv_forward(const talkconv_forward_call* call, void* const* data);
TALKCONV_EXPORT int32_t talkconv_backward(const talkconv_backward_call* call, void* const* data);

// Drops elements of x at random and scales the others by 1 / (1 - probability). The same seed drops the
// same elements again. x and out are contiguous and may be the same.
TALKCONV_EXPORT void talkconv_dropout(const talkconv_dropout_call* call, const void* x, void* out);

// The instruction set in use, and all that this library has and this processor runs, the best first.
TALKCONV_EXPORT const char* talkconv_isa(void);
TALKCONV_EXPORT const char* talkconv_isa_at(int32_t index);
// Switches to one of them by name, for tests. Returns 0 if it is not available.
TALKCONV_EXPORT int32_t talkconv_use_isa(const char* name);

}  // extern "C"
