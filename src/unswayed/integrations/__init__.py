"""Adapters for other tools: one file per tool, which converts types and does nothing else."""
