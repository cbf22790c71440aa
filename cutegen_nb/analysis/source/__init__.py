"""Analysis of candidate sources: differences, three-way merging and static screening."""
