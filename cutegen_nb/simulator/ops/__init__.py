"""PTX instructions by family: arithmetic, memory, synchronisation, warp."""
