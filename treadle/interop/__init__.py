"""Exchange with JAX and PyTorch. Neither is imported before a function of its own is called."""
