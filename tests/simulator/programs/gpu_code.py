"""Things that code for a GPU takes for granted."""

import importlib

import cuda.bindings.driver as cuda
import cuda.bindings.runtime as cudart
import cutlass
import torch
from cutlass import utils
from cutlass.cute.runtime import from_dlpack


def factories(simulation):
    device = torch.device("cuda")
    made = [
        torch.empty(2, device="cuda"),
        torch.zeros(2, device="cuda:0"),
        torch.ones(2, device=device),
        torch.full((2,), 1.0, device=0),
        torch.randn(2, device=torch.device("cuda", 0), generator=torch.Generator(device="cuda")),
        torch.rand(2, device=device, pin_memory=False),
        torch.tensor([1, 2], device=device),
        torch.as_tensor([1, 2], device=device),
        torch.arange(2, device=device),
        torch.linspace(0, 1, 2, device=device),
        torch.eye(2, device=device),
        torch.empty_like(torch.zeros(2), device=device),
        torch.zeros(2).new_empty(2, device=device),
        torch.empty_strided((2, 2), (1, 2), device=device),
        torch.zeros(2, pin_memory=True),
    ]
    with torch.device("cuda"):
        made.append(torch.zeros(2))
    torch.set_default_device("cuda")
    made.append(torch.zeros(2))
    default = torch.get_default_device().type == "cuda"
    assert default
    assert all(x.device.type == "cuda" and x.is_cuda and not x.is_cpu for x in made)


def moves(simulation):
    x = torch.ones(2)
    assert x.cuda() is x
    assert x.to("cuda") is x
    assert x.to(torch.device("cuda:0"), non_blocking=True) is x
    assert x.to(device="cuda") is x
    assert x.to(x.device) is x
    assert x.to(0) is x
    assert x.to("cuda", torch.float16).dtype == torch.float16
    assert x.to(torch.float64).dtype == torch.float64
    assert x.cpu() is not x
    assert x.to("cpu") is not x
    assert x.cpu().numpy().tolist() == [1.0, 1.0]
    assert x.device == torch.zeros(2, device="cuda").device
    assert str(x.device) == "cuda:0"
    assert x.get_device() == 0
    assert x.type() == "torch.cuda.FloatTensor"
    assert x.pin_memory() is x
    assert torch.empty(3, device=x.device).shape == (3,)
    assert torch.empty(3, device="meta").device.type == "meta"
    assert x.record_stream(torch.cuda.current_stream()) is None


def modules(simulation):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4, device="cuda"), torch.nn.BatchNorm1d(4)).cuda()
    model = model.to("cuda").to(device=torch.device("cuda"), dtype=torch.float32).eval()
    x = torch.randn(5, 3, device="cuda")
    assert all(p.is_cuda for p in model.parameters())
    with torch.autocast("cuda", enabled=False), torch.no_grad():
        y = model(x)
    assert y.is_cuda
    assert next(model.parameters()).device == x.device


def cuda_module(simulation):
    x = torch.ones(1, device="cuda")
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == 1
    assert torch.cuda.current_device() == 0
    assert torch.cuda.get_device_capability(x.device) == simulation.device.capability
    properties = torch.cuda.get_device_properties(0)
    assert properties.multi_processor_count == simulation.device.sm_count
    assert "simulator" in torch.cuda.get_device_name()
    with torch.cuda.device(x.device), torch.cuda.stream(torch.cuda.Stream()):
        assert torch.cuda.current_stream(x.device).cuda_stream == 0
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    end.record(torch.cuda.default_stream())
    end.synchronize()
    assert start.elapsed_time(end) == 999_999.0
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    importlib.import_module("torch._dynamo")  # refuses two names of torch.cuda with one function
    assert start.cuda_event != end.cuda_event != 0
    torch.cuda.nvtx.range_push("x")
    torch.cuda.nvtx.range_pop()
    torch.cuda.manual_seed(3)
    first = torch.rand(2, device="cuda")
    torch.cuda.manual_seed_all(3)
    assert torch.equal(first, torch.rand(2, device="cuda"))
    torch.manual_seed(3)
    assert torch.equal(first, torch.rand(2, device="cuda"))
    assert torch.cuda.max_memory_allocated() == 0


def driver(simulation):
    assert cuda.cuInit(0)[0] == cuda.CUresult.CUDA_SUCCESS
    device = cuda.cuDeviceGet(0)[1]
    attribute = cuda.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    assert cuda.cuDeviceGetAttribute(attribute, device)[1] == simulation.device.sm_count
    assert cudart.cudaGetDeviceCount()[1] == 1
    event = cuda.cuEventCreate(0)[1]
    assert cuda.cuEventRecord(event, cuda.CUstream(0))[0].value == 0
    assert cuda.cuStreamSynchronize(cuda.cuStreamCreate(0)[1])[0].value == 0
    hardware = utils.HardwareInfo()
    assert hardware.get_device_multiprocessor_count() == simulation.device.sm_count
    cutlass.cuda.initialize_cuda_context()
    assert hardware.get_max_active_clusters(2) > 0


def alignment(simulation):
    """Memory begins on a multiple of 512 bytes, as torch's CUDA allocator gives it."""
    made = [
        torch.zeros(1, device="cuda"),
        torch.empty(3, 5, dtype=torch.float16, device="cuda"),
        torch.randn(100_003, device="cuda"),
        torch.arange(7).cuda() + 1,
        torch.nn.Linear(3, 5).cuda().weight,
    ]
    assert [one.data_ptr() % 512 for one in made] == [0] * len(made)
    assert made[2][1:].data_ptr() % 512 == 4
    from_dlpack(made[2], assumed_align=512)


CASES = (factories, moves, modules, cuda_module, driver, alignment)
