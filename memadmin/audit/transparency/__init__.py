"""Proof of the log: Merkle tree, sequencer, signed checkpoints, anchors, and the stand-alone verifier."""
