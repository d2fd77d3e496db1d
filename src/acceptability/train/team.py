"""The processes that train one network together: one, unless ``torchrun`` or ``accelerate launch`` started several.

Each takes its share of every batch; their gradients are averaged, so the network is the same in all of them.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

import torch

from acceptability.errors import MissingExtra, TrainError


class Team:
    """The processes, seen from one of them."""

    @cached_property
    def _accelerator(self) -> Any:
        try:
            from accelerate import Accelerator
        except ImportError as error:
            raise MissingExtra("training a network", "accelerate", "'acceptability[neural]'") from error
        # Without being told that there is no GPU, it takes several processes on CPUs for lonely ones.
        found = Accelerator(mixed_precision="no", cpu=not torch.cuda.is_available())
        wanted = int(os.environ.get("WORLD_SIZE", "1"))
        if found.num_processes != wanted:
            raise TrainError(f"{wanted} processes were started, but accelerate joins {found.num_processes} of them")
        return found

    @property
    def device(self) -> torch.device:
        """Where this process computes."""
        found: torch.device = self._accelerator.device
        return found

    @property
    def rank(self) -> int:
        """Which of the processes this is, from 0."""
        return int(self._accelerator.process_index)

    @property
    def size(self) -> int:
        """How many processes there are."""
        return int(self._accelerator.num_processes)

    def first_goes_first(self) -> AbstractContextManager[None]:
        """Let the first process do what follows before the others, which then find what it has written."""
        context: AbstractContextManager[None] = self._accelerator.main_process_first()
        return context

    def joined(self, net: torch.nn.Module) -> torch.nn.Module:
        """Return a network, on the device, whose gradients are the mean over all processes."""
        joined: torch.nn.Module = self._accelerator.prepare_model(net)
        return joined

    def apart(self, net: torch.nn.Module) -> AbstractContextManager[None]:
        """Let gradients grow in each process alone, until the last part of a batch."""
        context: AbstractContextManager[None] = self._accelerator.no_sync(net)
        return context

    def agreed(self, value: float) -> float:
        """Return the first process's number in all of them, for what they must decide alike."""
        if self.size == 1:
            return value
        from accelerate.utils import broadcast

        return float(broadcast(torch.tensor(value, dtype=torch.float64, device=self.device)).item())

    def dismissed(self) -> None:
        """End all processes but the first, which alone writes the model."""
        if self.size == 1:
            return
        self._accelerator.wait_for_everyone()
        self._accelerator.end_training()
        if self.rank:
            raise SystemExit(0)
