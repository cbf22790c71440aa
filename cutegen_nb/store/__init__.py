"""Session storage: SQLite database, writer lock and export bundles."""
