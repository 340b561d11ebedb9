"""State of channels in the control store: the tables that have them."""
