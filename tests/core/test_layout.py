"""Layouts of a kernel survive the store, with the thread–value layouts in them."""

from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.layout import LayoutKind, LayoutRecord, TvLayout


def test_a_tiled_mma_comes_back_with_its_views():
    view = TvLayout(role="C", text="((4,8),2):((32,1),16)", tiler="[16:1;8:1]")
    record = LayoutRecord(kind=LayoutKind.MMA, name="tiled_mma", line=12, views=(view,))
    assert decode(LayoutRecord, encode(record)) == record
    assert decode(LayoutRecord, {"_": "LayoutRecord", "kind": "tiled MMA"}).views == ()
