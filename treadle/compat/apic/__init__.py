"""``warp._src.apic``: Warp's file format for graphs."""
