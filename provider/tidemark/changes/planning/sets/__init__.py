"""Which files hold the changes of a window, and which way to them is cheapest: decided from log actions alone."""
