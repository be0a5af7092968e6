"""What this machine offers: its CPU, and which of the engines load on it."""
