"""The relay: takes entries out of the database and hands them to sinks, with any number of replicas side by side."""
