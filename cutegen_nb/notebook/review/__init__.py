"""Parts of the panel's view that serve a review: the base of a comparison, and figures at a glance."""
