"""Names that outside packages may import: stable by semantic version (`docs/reference/extending.md`).

Each module serves one kind of extension; nothing here is code.
"""
