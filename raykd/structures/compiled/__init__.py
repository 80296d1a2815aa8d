"""Kernels for the CPU, compiled by numba."""
