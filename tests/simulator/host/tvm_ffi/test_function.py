"""Functions compiled for TVM-FFI, called as programs call them."""

PROGRAM = "tvm_ffi"


def test_a_function_for_tvm_ffi_is_called_as_on_a_gpu(outcome):
    assert outcome == "ok", outcome
