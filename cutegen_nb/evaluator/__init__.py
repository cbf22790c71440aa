"""The verdict on a candidate. Child processes import torch; the evaluator itself does not."""
