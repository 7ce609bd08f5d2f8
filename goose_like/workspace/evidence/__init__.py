"""Evidence of what was done: a hash of the files, and a ledger of commands with the hashes around them."""
