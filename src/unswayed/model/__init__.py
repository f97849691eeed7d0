"""What is judged, how it is shown, and what an answer to it is."""
