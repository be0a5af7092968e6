"""Frames and tensors from one process to another, through memory that both see."""
