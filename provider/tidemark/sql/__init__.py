"""SQL as text: identifiers, names, statements, and SQL of other programs."""
