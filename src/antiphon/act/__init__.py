"""What the model wants done in, what came of it out: tools."""
