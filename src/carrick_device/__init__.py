"""The device client: shows patrol scores on a display in the hall. It shares no code with the server it asks."""
