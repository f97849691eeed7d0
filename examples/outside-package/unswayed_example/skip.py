"""A skip rule of `apoc`: no key is asked about a short question."""


def is_short(item):
    """Return True if a question has fewer than five words."""
    return len(str(item.prompt).split()) < 5
