"""Writers of TensorBoard events."""
