"""What stands on nothing of ours: errors, arguments, files, digests, the registry."""
