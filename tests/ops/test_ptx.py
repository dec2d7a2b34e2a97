"""Tests what launches of the GPU kernels compute, by executing their compiled PTX on the CPU.

This is the code that Triton would hand to the driver of an A100. Reading or writing outside of the
tensors, two programs that store at one address, a missing barrier and an unknown opcode are errors.
"""

import dataclasses

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="the GPU kernels need Triton: pip install 'talkconv[gpu]'")

from tests.cases import assert_exact, exact, exact_grads
from tests.ops.gpu_runs import fill_fresh_memory
from tests.ops.ptx.machine import Machine, Memory
from tests.ops.ptx.syntax import Kernel, PTXError
from tests.ops.ptx_launches import PROBLEMS, QUICK, calls_of, compiled, problem, run

NAMES = ("grad_x", "grad_left", "grad_right")


@pytest.mark.parametrize(
    "name",
    [
        *QUICK,
        *(pytest.param(name, marks=pytest.mark.slow) for name in PROBLEMS if name not in QUICK),
    ],
)
def test_launches_compute_the_definition(name, monkeypatch):
    fill_fresh_memory(monkeypatch)
    case, grad_out = problem(name)
    forward, backward = calls_of(case, grad_out)
    of_forward, of_backward = compiled(name)
    # the forward does not depend on the window
    if name != "short windows":
        (out,) = run(forward, of_forward)
        assert_exact(out, exact(case), "out")
    grads = run(backward, of_backward)
    for what, grad, expected in zip(NAMES, grads, exact_grads(case, grad_out), strict=True):
        assert_exact(grad, expected, what)


@pytest.mark.slow
def test_wild_elements_are_repaired():
    """An infinity sends a block through the kernel that repairs, which otherwise ends at once."""
    case, grad_out = problem("causal")
    case.x[0, 60, 1] = grad_out[1, 70, 2] = torch.inf
    forward, backward = calls_of(case, grad_out)
    of_forward, of_backward = compiled("causal")
    (out,) = run(forward, of_forward)
    assert out[0, 60, 1] == torch.inf
    assert out.isfinite().sum() >= out.numel() - 10
    grad_x, *_ = run(backward, of_backward)
    assert grad_x[1, 70, 2] == torch.inf
    assert grad_x.isfinite().sum() >= grad_x.numel() - 10


def test_one_changed_instruction_is_noticed():
    case, grad_out = problem("long windows")
    chunk_sums, *others = compiled("long windows")[0]
    broken = chunk_sums.ptx.replace("add.rn.f64", "sub.rn.f64", 1)
    assert broken != chunk_sums.ptx
    forward, _ = calls_of(case, grad_out)
    (out,) = run(forward, [dataclasses.replace(chunk_sums, ptx=broken), *others])
    with pytest.raises(AssertionError, match="too much"):
        assert_exact(out, exact(case))


# y[i] = x[i] + 1 for 64 numbers, and what the tests put in place of BEFORE and AFTER
ADD_ONE = """
.visible .entry add_one(
	.param .u64 .ptr .global .align 1 add_one_param_0,
	.param .u64 .ptr .global .align 1 add_one_param_1,
	.param .u64 .ptr .global .align 1 add_one_param_2,
	.param .u64 .ptr .global .align 1 add_one_param_3
)
.reqntid 64
{
	.reg .b32 	%r<9>;
	ld.param.b64 	%rd1, [add_one_param_0];
	ld.param.b64 	%rd2, [add_one_param_1];
	mov.u32 	%r1, %tid.x;
	mad.wide.u32 	%rd3, %r1, 4, %rd1;  // a comment
	mad.wide.u32 	%rd4, %r1, 4, %rd2;
	setp.lt.s32 	%p1, %r1, 40;
	BEFORE
	ld.global.b32 	%r2, [%rd3+0];
	add.rn.f32 	%r3, %r2, 0f3F800000;
	AFTER
	st.global.b32 	[%rd4], { %r3 };
	ret;
}
"""


def run_add_one(before="", after="", programs=1):
    """Run the kernel above on 0, 1, 2, ... and return its output."""
    kernel = Kernel(ADD_ONE.replace("BEFORE", before).replace("AFTER", after))
    memory = Memory([256, 256], first_address=2**36)
    x, y = (block.view(np.float32) for block in memory.blocks)
    x[:] = np.arange(64)
    Machine(kernel, programs, memory.addresses[:2].tolist(), memory, shared=256).run()
    return y


def test_a_kernel_worked_out_by_hand():
    assert run_add_one().tolist() == list(range(1, 65))


def test_predicates_choose_threads():
    y = run_add_one(after="@%p1 mov.b32 %r3, 0f00000000;")
    assert y.tolist() == [0] * 40 + list(range(41, 65))


def test_shuffles_stay_in_their_warp():
    up = run_add_one(after="shfl.sync.up.b32 %r3, %r3, 1, 0, -1;")
    assert up[[0, 1, 31, 32, 33]].tolist() == [1, 1, 31, 33, 33]
    butterfly = run_add_one(after="shfl.sync.bfly.b32 %r3, %r3, 1, 31, -1;")
    assert butterfly[:4].tolist() == [2, 1, 4, 3]


SHARED = """
	mov.b32 %r4, global_smem;
	mad.lo.s32 %r5, %r1, 4, %r4;
	sub.s32 %r6, 252, %r5;
	st.shared.b32 [%r5], %r3;
	{}
	ld.shared.b32 %r3, [%r6];
"""


def test_shared_memory_needs_a_barrier():
    assert run_add_one(after=SHARED.format("bar.sync 0;")).tolist() == list(range(64, 0, -1))
    with pytest.raises(PTXError, match="without a barrier in between"):
        run_add_one(after=SHARED.format(""))


@pytest.mark.parametrize(
    ("before", "message"),
    [
        ("sin.approx.f32 %r2, %r2;", r"add_one: sin\.approx.* unknown opcode sin\.approx\.f32"),
        ("add.rn.f32 %r2, %r7, %r7;", "reads %r7, which has no value yet"),
        ("@%p1 bra $L__BB0_1;\n$L__BB0_1:", "threads of a program go different ways"),
        ("add.s64 %rd3, %rd3, 4;", "leaves the memory that exists"),
        # a step of 8192 bytes is a row of 1024 numbers in float64
        ("add.s64 %rd3, %rd3, 8192;", "leaves the memory that exists"),
        ("add.s64 %rd3, %rd3, 2;", "not a multiple of 4"),
        ("mov.b64 %rd4, %rd2;", "stores different values"),
    ],
)
def test_what_a_gpu_forbids_is_an_error(before, message):
    with pytest.raises(PTXError, match=message):
        run_add_one(before)


def test_a_number_that_stands_half_inside_is_an_error():
    memory, user = Memory([6]), np.array([0])
    assert memory.load(np.array([0]), 32, user) == 0
    with pytest.raises(PTXError, match="leaves the memory that exists"):
        memory.load(np.array([4]), 32, user)


def test_two_programs_must_not_store_at_one_address():
    with pytest.raises(PTXError, match="for two users, at one address"):
        run_add_one(programs=2)
