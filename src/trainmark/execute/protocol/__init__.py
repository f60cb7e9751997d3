"""What trainmark and the processes that it measures say to each other."""
