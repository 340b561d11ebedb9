"""Links from a task to what it works on."""
