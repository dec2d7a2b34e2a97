"""Executes PTX, the assembly language of NVIDIA GPUs, on the CPU."""
