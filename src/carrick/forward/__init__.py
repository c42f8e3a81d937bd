"""The edge forwarder: takes events, keeps them on disk, hands them to a cloud endpoint."""
