"""The operator's console: how the channels stand, entry by entry, and what a person on call can do about it."""
