"""SQL as text: identifiers, names, statements, and SQL that others wrote."""
