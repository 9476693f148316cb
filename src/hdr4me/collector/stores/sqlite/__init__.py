"""The store in one SQLite file: `connection`, `rows` and the `store` itself."""
