"""Looks at losses seldom where each look makes the processor wait for the GPU."""

from pathlib import Path

import torch

from fairness_pipeline.models.checkpoints import check_finite

_EVERY = 20


class Watch:
    """Sums what each step gives, and refuses a sum that is no finite number.

    A number that is taken from a GPU waits for all work that was queued there. So the sum stays on the device. It is
    looked at after every step on a processor, and after twenty on a GPU: NaN and infinity do not leave a sum again.

    Args:
        what: The name of the loss.
        checkpoint: The file with the last good state, if there is one; None where that is not told.
        every: The number of steps between two looks, if it is another one.
    """

    def __init__(self, what: str, checkpoint: Path | None, every: int | None = None) -> None:
        self._what, self._checkpoint, self._every = what, checkpoint, every
        self._sums: torch.Tensor | None = None
        self._steps = 0

    def add(self, loss: torch.Tensor, where: str, terms: torch.Tensor | int = 1) -> list[float]:
        """Adds the loss of a step.

        Args:
            loss: A single number.
            where: The step, for the message of an error.
            terms: What it is a sum over.

        Returns:
            As `collect`, if it was time to look; zeros otherwise.

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
        """The sum of the losses since the last look, and of what they are sums over.

        Args:
            where: The step, for the message of an error.

        Raises:
            FairnessError: a loss is NaN or infinite.
        """
        if self._sums is None or not self._steps:
            return [0.0, 0.0]
        since = f"{where}, or up to {self._steps - 1} steps before" if self._steps > 1 else where
        found: list[float] = self._sums.tolist()
        check_finite(torch.tensor(found[0]), self._what, since, self._checkpoint)
        self._sums.zero_()
        self._steps = 0
        return found
