"""The conversion of one value to the type of its column."""
