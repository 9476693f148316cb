"""The store in a PostgreSQL database: the `database` and the `store` itself."""
