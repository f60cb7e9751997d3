"""Training on several processes, with PyTorch's engines and the same trainers as on one."""
