"""What runs when, and where: plans of work, and engines that carry them out."""
