"""Resource managers: whatever has machines with slots and can run containers of allocations on them."""
