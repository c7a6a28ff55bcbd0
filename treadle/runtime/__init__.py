"""The machine tower: arrays, devices, launches, threads and the kernel cache. Knows no Python source and no compiler."""
