"""State of a simulated launch: registers, memories, addresses, barriers, and the limits of a device."""
