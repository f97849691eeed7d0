"""Questions of `local.py`, and the other programs that answer them."""
