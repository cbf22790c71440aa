"""Writers of operators, in order of preference."""

from __future__ import annotations

from cutegen_nb.authors.offline.operators.convolution.writer import ConvolutionWriter
from cutegen_nb.authors.offline.operators.operator import OperatorWriter

OPERATOR_WRITERS: tuple[OperatorWriter, ...] = (ConvolutionWriter(),)
"""Every writer; where two match the same nodes, the first one keeps them."""
