"""Load a problem, draw its inputs, trace its reference and scale it for the simulator."""
