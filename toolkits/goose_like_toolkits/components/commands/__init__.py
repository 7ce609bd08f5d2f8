"""What `goose-like component` and `conpack` do."""
