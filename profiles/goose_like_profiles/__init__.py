"""The profiles that come with goose_like, one YAML file each."""
