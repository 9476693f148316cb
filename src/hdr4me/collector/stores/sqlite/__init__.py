"""The store in one SQLite file: the `database` and the `store` itself."""
