"""A session as a page, a picture and a table. The renderers also serve the notebook."""
