"""Contacts: which pairs of geoms may touch, where they do, and with which parameters."""
