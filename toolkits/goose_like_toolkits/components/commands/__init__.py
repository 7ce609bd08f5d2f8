"""The commands `goose-like component` and `conpack`."""
