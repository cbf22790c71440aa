"""Selection: the largest or smallest elements of each row, and their positions."""
