"""TVM-FFI of the simulator: calls of functions compiled with ``--enable-tvm-ffi``, answered on the CPU."""
