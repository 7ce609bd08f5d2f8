"""The toolkits that come with goose_like, one sub-package each."""
