"""What shows things. This room reads arrays and changes none."""
