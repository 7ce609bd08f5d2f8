"""What runs in the process of the components: none of goose_like's own, and nothing but Python's library."""
