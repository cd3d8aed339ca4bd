"""Commands about the cluster as a whole: `resolute job`, `storage`, `template` and `version`."""
