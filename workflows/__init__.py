"""Temporal workflows: orchestration and nothing else."""
