"""Evolution of several kernels side by side: plan an epoch, run its slots, select the members that go on."""
