"""Progress on a streamed reply is a phrase that carries the text so far."""

from cutegen_nb.core.ports import ReplyGrowth


def test_the_phrase_is_a_text_and_keeps_what_was_written():
    told = ReplyGrowth("writing, 12 tokens", "import cutlass")
    assert told == "writing, 12 tokens"
    assert told.written == "import cutlass"
    assert isinstance(told, str)
