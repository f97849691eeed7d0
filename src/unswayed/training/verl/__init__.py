"""The verl engine: policy gradients on permutation groups with Ray, FSDP and vLLM. Untested on GPUs."""
