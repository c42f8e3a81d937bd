"""The displays: a terminal, a matrix of 64x32 lamps, and a picture of that matrix in a file."""
