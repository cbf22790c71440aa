"""What a prompt states where nothing else is known."""

from cutegen_nb.core.ports import GuideRequest
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.prompting.context import PromptContext, no_guide
from cutegen_nb.prompting.library import shipped_library
from cutegen_nb.testing.examples import session_of


def test_an_extent_that_no_problem_has_is_nought_and_no_guide_has_no_chapter():
    context = PromptContext(library=shipped_library(), session=session_of(Relation.FIRST))
    assert context.extents["rows"] == 0
    assert context.guide is no_guide
    assert no_guide(GuideRequest(source="x")) == ""
