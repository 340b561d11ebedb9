"""The log of change streams: how it is written, and what readers see."""
