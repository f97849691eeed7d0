"""Items and recorded decisions from outside."""
