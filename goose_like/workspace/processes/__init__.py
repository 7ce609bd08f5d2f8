"""Running commands, and the helper processes that start them."""
