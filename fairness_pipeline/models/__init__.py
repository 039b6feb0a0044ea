"""Models and what they share: training, checkpoints, batching, pretrained models, chat endpoints."""
