"""Change streams: the changes of watched tables as records in partitions, for several readers."""
