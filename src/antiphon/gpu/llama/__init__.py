"""A Llama-family model on a GPU: weights, pages of its memory, one step for any rows, and the engine that drives it."""
