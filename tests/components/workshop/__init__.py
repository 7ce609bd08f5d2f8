"""Components as their authors write them: by the guide alone, with nothing of goose_like."""
