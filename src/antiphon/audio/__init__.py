"""Sound at the door: from bytes, files and devices to frames and back, at any rate; engines and turns are unknown."""
