"""The moving source of the examples: the flights of 2013 from New York, replayed hour by hour as a live Delta table."""
