"""Knowledge base, read: likeness of problems, expected gains, and what an author is told of them."""
