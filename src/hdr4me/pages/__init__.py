"""Pages: one renderer for HTML and Markdown documents."""
