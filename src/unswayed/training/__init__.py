"""Training the bias out of an open-weights judge: PA-GRPO, GRPO and their ablations, PIF, the filter.

Nothing heavy is imported here; `unswayed.training.run.train` is the door.
"""
