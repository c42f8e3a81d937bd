"""HTTP for all services: routes as data, one place for errors, OpenAPI from the types."""
