"""The receiving side of the forwarder: takes batches, stores each event once, and can relay it on."""
