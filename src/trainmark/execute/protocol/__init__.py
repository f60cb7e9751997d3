"""The protocol between trainmark and the processes it measures."""
