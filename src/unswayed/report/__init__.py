"""The audit report: one HTML file, a table in the terminal, figures for papers."""
