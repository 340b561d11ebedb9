"""Steps of pipes on the worker's side."""
