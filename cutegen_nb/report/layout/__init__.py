"""Pictures of CuTe layouts as SVG and PNG."""
