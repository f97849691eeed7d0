"""Items, presentations and answers."""
