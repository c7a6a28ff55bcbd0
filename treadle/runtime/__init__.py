"""The machine tower: arrays, devices, launches, threads and the kernel cache. Knows no source and no compiler."""
