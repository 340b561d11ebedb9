"""Steps of clustering on the worker's side."""
