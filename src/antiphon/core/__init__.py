"""What every stage shares: errors, the clock, the four flowing values and the stamps of a turn."""
