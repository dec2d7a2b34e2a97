"""Compares all transforms of torch.func and both modes of autograd with the dense definition."""

import pytest
import torch
from torch.autograd import forward_ad, functional

from talkconv import TaLKState, reference, talk_conv, talk_conv_step
from tests.cases import make_case

LENGTHS = torch.tensor([3, 7])


def both(settings):
    """Return the operation and its definition as functions of x, left and right."""
    return [
        lambda x, left, right, operation=operation: operation(x, left, right, **settings)
        for operation in (talk_conv, reference.talk_conv)
    ]


def loss_of(operation):
    return lambda *tensors: operation(*tensors).sin().sum()


@pytest.fixture(params=[None, LENGTHS], ids=["whole", "lengths"])
def case(request):
    case = make_case(B=2, T=7, C=4, H=2, dtype=torch.float64)
    case.settings["lengths"] = request.param
    return case


TRANSFORMS = {
    "grad": lambda f: torch.func.grad(loss_of(f), argnums=(0, 1, 2)),
    "grad of grad": lambda f: torch.func.grad(
        lambda *tensors: torch.func.grad(loss_of(f), argnums=1)(*tensors).sin().sum(),
        argnums=(0, 1, 2),
    ),
    "jacrev": lambda f: torch.func.jacrev(f, argnums=(0, 1, 2)),
    "jacfwd": lambda f: torch.func.jacfwd(f, argnums=(0, 1, 2)),
    "hessian": lambda f: torch.func.hessian(loss_of(f), argnums=(0, 1, 2)),
    "reverse over forward": lambda f: torch.func.jacrev(torch.func.jacfwd(loss_of(f), argnums=2)),
    "autograd jacobian": lambda f: lambda *t: functional.jacobian(f, t, vectorize=True),
    "autograd hessian": lambda f: lambda *t: functional.hessian(loss_of(f), t, vectorize=True),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS.keys())
def test_transforms(implementation, case, transform):
    ours, definition = (transform(f)(case.x, case.left, case.right) for f in both(case.settings))
    torch.testing.assert_close(ours, definition)


def test_forward_derivatives(implementation, case):
    tensors = (case.x, case.left, case.right)
    torch.manual_seed(1)
    tangents = tuple(torch.randn_like(tensor) for tensor in tensors)
    ours, definition = both(case.settings)
    wanted = torch.func.jvp(definition, tensors, tangents)[1]
    assert wanted.abs().sum() > 0
    torch.testing.assert_close(torch.func.jvp(ours, tensors, tangents)[1], wanted)
    ours(*tensors)  # a call like this is known from now on
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(*pair) for pair in zip(tensors, tangents, strict=True)]
        tangent = forward_ad.unpack_dual(ours(*duals)).tangent
    torch.testing.assert_close(tangent, wanted)


def test_a_gradient_with_a_tangent(implementation, case):
    """Only the gradient has a tangent. The forward and an earlier backward had none."""
    leaves = case.leaves()
    out = talk_conv(*leaves, **case.settings)
    grad, tangent = torch.randn(2, *out.shape, dtype=torch.float64)
    wanted = torch.autograd.grad(out, leaves, tangent, retain_graph=True)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(grad, tangent)
        found = torch.autograd.grad(out, leaves, dual)
        tangents = [forward_ad.unpack_dual(one).tangent for one in found]
    for one, want in zip(tangents, wanted, strict=True):
        torch.testing.assert_close(one, want)


def test_gradients_of_each_sample(implementation):
    case = make_case(B=3, T=7, C=4, H=2, dtype=torch.float64)
    ours, definition = both(case.settings)
    tensors = (case.x, case.left, case.right)

    def of_each(operation):
        def loss(*sample):
            return operation(*(tensor[None] for tensor in sample)).sin().sum()

        return torch.func.vmap(torch.func.grad(loss, argnums=(0, 1, 2)))(*tensors)

    torch.testing.assert_close(of_each(ours), of_each(definition))


def test_batches_of_gradients(implementation, case):
    ours, definition = both(case.settings)
    many = torch.randn(3, *case.x.shape, dtype=torch.float64)
    found = []
    for operation in (ours, definition):
        leaves = case.leaves()
        out = operation(*leaves)
        found.append(torch.autograd.grad(out, leaves, many, is_grads_batched=True))
    torch.testing.assert_close(*found)


def test_packed_sequences():
    case = make_case(T=9, C=4, H=2, dtype=torch.float64, cu_seqlens=torch.tensor([0, 4, 9]))
    ours, definition = both(case.settings)
    tensors = (case.x, case.left, case.right)
    for transform in (torch.func.grad, torch.func.grad_and_value):
        found = (transform(loss_of(f))(*tensors) for f in (ours, definition))
        torch.testing.assert_close(*found)
    tangents = tuple(torch.ones_like(tensor) for tensor in tensors)
    found = (torch.func.jvp(f, tensors, tangents) for f in (ours, definition))
    torch.testing.assert_close(*found)


def test_steps(implementation):
    case = make_case(B=2, T=7, C=4, H=2, r_max=0, dtype=torch.float64)

    def steps(x, left):
        state = TaLKState.empty(2, 4, l_max=case.settings["l_max"], dtype=torch.float64)
        first, state = talk_conv_step(x[:, :3], left[:, :3], state)
        second, state = talk_conv_step(x[:, 3:], left[:, 3:], state)
        return torch.cat((first, second), 1)

    def whole(x, left):
        return reference.talk_conv(x, left, None, **case.settings)

    for transform in (torch.func.jacrev, torch.func.jacfwd):
        found = (transform(f, argnums=(0, 1))(case.x, case.left) for f in (steps, whole))
        torch.testing.assert_close(*found)
    found = (torch.func.hessian(loss_of(f))(case.x, case.left) for f in (steps, whole))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("transform", [torch.func.jacfwd, torch.func.grad])
def test_unsupported_transforms_are_errors_in_compiled_code(transform):
    case = make_case()
    torch._dynamo.reset()
    loss = loss_of(both(case.settings)[0])
    compiled = torch.compile(transform(loss), fullgraph=True, backend="aot_eager")
    with pytest.raises(RuntimeError, match=r"forward derivatives|functorch"):
        compiled(case.x, case.left, case.right)
