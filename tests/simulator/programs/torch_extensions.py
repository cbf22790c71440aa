"""Code of the program that torch calls back: in it, too, tensors are on the GPU and kernels can be launched."""

import functools

import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def double_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    y[tidx] = x[tidx] * 2.0


@cute.jit
def double(x: cute.Tensor, y: cute.Tensor):
    double_kernel(x, y).launch(grid=(1, 1, 1), block=(64, 1, 1))


def doubled(x):
    assert (x.is_cuda, x.device.type, x.device.index) == (True, "cuda", 0)
    y = torch.empty(64, device=x.device)
    assert y.is_cuda
    double(from_dlpack(x.detach()), from_dlpack(y))
    return y


def custom_operators(simulation):
    def work(x: torch.Tensor) -> torch.Tensor:
        return doubled(x)

    for number, settings in enumerate(({}, {"device_types": "cuda"})):
        operator = torch.library.custom_op(f"tests::doubled{number}", work, mutates_args=(), **settings)
        x = torch.randn(64, device="cuda")
        assert torch.equal(operator(x), 2 * x)
    assert len(simulation.launches) == 2


def a_custom_operator_has_a_backward_pass_on_the_gpu(simulation):
    seen = []

    @torch.library.custom_op("tests::trained", mutates_args=())
    def trained(x: torch.Tensor) -> torch.Tensor:
        return doubled(x)

    def backward(context, gradient):
        seen.append(gradient.is_cuda)
        return doubled(gradient.contiguous())

    trained.register_autograd(backward)
    x = torch.randn(64, device="cuda", requires_grad=True)
    trained(x).backward(torch.ones(64, device="cuda"))
    assert seen == [True]
    assert x.grad.tolist() == [2.0] * 64
    assert x.grad.is_cuda


def functions_registered_for_cuda(simulation):
    """That for CUDA runs where there is one for the CPU as well, in whatever order they came."""

    def told(key, x):
        return x + (1 if key == "CUDA" and x.is_cuda else 0)

    for name, keys in (("late", ("CPU", "CUDA")), ("early", ("CUDA", "CPU")), ("only", ("CUDA",))):
        library = torch.library.Library(f"tests_{name}", "DEF")
        library.define("which(Tensor x) -> Tensor")
        for key in keys:
            library.impl("which", functools.partial(told, key), key)
        found = getattr(torch.ops, f"tests_{name}").which(torch.zeros(1, device="cuda"))
        assert found.item() == 1, name
        library._destroy()


def autograd_functions(simulation):
    seen = []

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            context.save_for_backward(x)
            return doubled(x)

        @staticmethod
        def backward(context, gradient):
            (x,) = context.saved_tensors
            seen.append((x.is_cuda, gradient.device.type))
            return doubled(gradient.contiguous())

    x = torch.randn(64, device="cuda", requires_grad=True)
    Doubled.apply(x).sum().backward()
    assert seen == [(True, "cuda")]
    assert x.grad.tolist() == [2.0] * 64
    assert len(simulation.launches) == 2


def hooks(simulation):
    seen = {}
    model = torch.nn.Linear(4, 3, device="cuda")
    model.register_forward_hook(lambda module, given, result: seen.update(forward=result.is_cuda))
    model.register_full_backward_hook(lambda module, before, after: seen.update(backward=after[0].is_cuda))
    x = torch.randn(2, 4, device="cuda", requires_grad=True)
    y = model(x)
    y.register_hook(lambda gradient: seen.update(tensor=gradient.device.type))
    y.sum().backward()
    assert seen == {"forward": True, "backward": True, "tensor": "cuda"}


def compile_returns_the_function_as_it_is(simulation):
    model = torch.nn.Linear(2, 2)
    assert torch.compile(model, mode="max-autotune") is model

    @torch.compile(fullgraph=True)
    def work(x):
        return doubled(x)

    x = torch.randn(64, device="cuda")
    assert torch.equal(work(x), 2 * x)


def the_profiler_records_the_host(simulation):
    kinds = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA]) as profile:
        torch.ones(3, device="cuda") + 1
    assert any("add" in one.key for one in profile.key_averages())


def a_profiler_of_the_gpu_alone_starts(simulation):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        assert float((torch.ones(4, device="cuda") + 1).sum()) == 8
    assert profile.key_averages() is not None


def a_product_is_wider_than_its_operands(simulation):
    a, b = torch.full((2, 3, 5), 300.0), torch.full((2, 5, 4), 300.0)
    a, b = a.to("cuda", torch.float16), b.to("cuda", torch.float16)
    for product in (
        torch.bmm(a, b, out_dtype=torch.float32)[0],
        torch.mm(a[0], b[0], torch.float32),
        torch.addmm(torch.zeros(3, 4, device="cuda"), a[0], b[0], out_dtype=torch.float32, beta=0),
    ):
        assert product.dtype is torch.float32
        assert product.tolist() == [[450_000.0] * 4] * 3
    assert torch.isinf(torch.mm(a[0], b[0])).all()


CASES = (
    custom_operators,
    a_custom_operator_has_a_backward_pass_on_the_gpu,
    functions_registered_for_cuda,
    autograd_functions,
    hooks,
    compile_returns_the_function_as_it_is,
    the_profiler_records_the_host,
    a_profiler_of_the_gpu_alone_starts,
    a_product_is_wider_than_its_operands,
)
