"""GPU data sheets, occupancy limits, memory hierarchy and rooflines."""
