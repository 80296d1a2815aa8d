"""Folders and object stores: files, caches, seals, digests."""
