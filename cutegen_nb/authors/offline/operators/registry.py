"""Writers of operators, in order of preference."""

from __future__ import annotations

from cutegen_nb.authors.offline.operators.attention.writer import AttentionWriter
from cutegen_nb.authors.offline.operators.convolution.writer import ConvolutionWriter
from cutegen_nb.authors.offline.operators.gathers.writer import GathersWriter
from cutegen_nb.authors.offline.operators.operator import OperatorWriter
from cutegen_nb.authors.offline.operators.recurrence.writer import RecurrenceWriter
from cutegen_nb.authors.offline.operators.resampling.writer import ResamplingWriter
from cutegen_nb.authors.offline.operators.scans.writer import ScanWriter
from cutegen_nb.authors.offline.operators.selection.writer import SelectionWriter
from cutegen_nb.authors.offline.operators.windows.writer import WindowsWriter

OPERATOR_WRITERS: tuple[OperatorWriter, ...] = (
    WindowsWriter(),
    ConvolutionWriter(),
    ScanWriter(),
    AttentionWriter(),
    GathersWriter(),
    ResamplingWriter(),
    RecurrenceWriter(),
    SelectionWriter(),
)
"""Every writer; where two match the same nodes, the first one keeps them."""
