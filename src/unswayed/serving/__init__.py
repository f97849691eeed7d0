"""Serve decisions over HTTP that do not depend on the order of the options."""
