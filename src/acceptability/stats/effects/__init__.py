"""How large an effect is: effect sizes, areas under the curve, equivalence within a margin, and power to find it."""
