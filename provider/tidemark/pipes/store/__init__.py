"""State of stages, file formats and pipes in the control store."""
