"""The store in a PostgreSQL database: `connection`, `rows` and the `store` itself."""
