"""What the layers of a launch share: grammar, world, plan, and who carries the plan out."""
