"""Slices of a GPU's time: submitted with a stage, a deadline and an estimate, run in the scheduler's order."""
