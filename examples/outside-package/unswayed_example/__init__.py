"""One thing of each kind that an outside package may register with Unswayed."""
