"""The pages that people see on their way to let a display in: HTML of values, without I/O and without scripts."""
