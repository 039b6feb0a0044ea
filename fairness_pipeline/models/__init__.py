"""Models and their shared code: training, checkpoints, batching, pretrained models, chat endpoints."""
