"""A picture keeps its size and its colours in fewer bytes."""

import io

from PIL import Image

from cutegen_nb.report.roofline.small_png import smaller


def test_a_drawing_of_few_colours_is_the_same_and_smaller():
    full = Image.new("RGB", (300, 200), "white")
    full.paste((47, 134, 193), (20, 20, 280, 100))
    written = io.BytesIO()
    full.save(written, format="png", compress_level=0)
    found = smaller(written)
    with Image.open(io.BytesIO(found)) as reread:
        assert reread.mode == "P"
        assert reread.convert("RGB").tobytes() == full.tobytes()
    assert len(found) < len(written.getvalue()) / 4
