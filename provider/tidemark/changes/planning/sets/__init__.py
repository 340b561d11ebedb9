"""The files that have the changes of a window, and the cheapest way to them, decided from log actions alone."""
