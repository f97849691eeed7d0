"""Foundations: errors, arguments, files, digests and the registry."""
