"""Named by trl."""


class StructuredOutputsParams:
    """Of colocated vLLM."""
