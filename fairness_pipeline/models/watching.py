"""Checks losses only now and then on a GPU, as each check makes the CPU wait for it."""

from pathlib import Path

import torch

from fairness_pipeline.models.checkpoints import check_finite

_EVERY = 20


class Watch:
    """Sums the losses of the steps, and raises an error if the sum is not finite.

    Reading a number from a GPU waits for all work queued there. So the sum stays on the device. It is checked after
    every step on a CPU, and after every twenty on a GPU: a sum that is NaN or infinite stays so.
    The message names the `checkpoint` with the last good state; `every` sets another number of steps.
    """

    def __init__(self, loss_name: str, checkpoint: Path | None, every: int | None = None) -> None:
        self._loss_name, self._checkpoint, self._every = loss_name, checkpoint, every
        self._sums: torch.Tensor | None = None
        self._steps = 0

    def add(self, loss: torch.Tensor, where: str, terms: torch.Tensor | int = 1) -> list[float]:
        """Adds the loss of a step.

        Returns:
            The result of `collect` if a check was due; zeros otherwise.

        Raises:
            FairnessError: a loss is NaN or infinite.
        """
        if self._sums is None:
            self._sums = torch.zeros(2, dtype=torch.float64, device=loss.device)
        self._sums[0] += loss.detach()
        self._sums[1] += terms
        self._steps += 1
        if self._steps >= (self._every or (1 if loss.device.type == "cpu" else _EVERY)):
            return self.collect(where)
        return [0.0, 0.0]

    def collect(self, where: str) -> list[float]:
        """Checks the losses; returns their sum since the last check, and the number of terms.

        Raises:
            FairnessError: a loss is NaN or infinite.
        """
        if self._sums is None or not self._steps:
            return [0.0, 0.0]
        period = f"{where}, or up to {self._steps - 1} steps before" if self._steps > 1 else where
        sums: list[float] = self._sums.tolist()
        check_finite(torch.tensor(sums[0]), self._loss_name, period, self._checkpoint)
        self._sums.zero_()
        self._steps = 0
        return sums
