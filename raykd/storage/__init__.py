"""Files in local folders and object stores: reading, writing, caches, checksums."""
