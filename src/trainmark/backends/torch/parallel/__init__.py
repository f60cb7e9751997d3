"""Training on several processes: PyTorch's own engines, driven by the same trainers as on one."""
