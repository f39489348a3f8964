"""Private inference from curvature and gradients: a few noisy sums, and a posterior that reads them as data."""
