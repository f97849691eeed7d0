"""Unswayed: judges and multiple-choice answers that depend on what is compared, never on where it stands."""
