"""Computes, simulates and checks what a number of agents needs."""
