"""A window that shows frames, by pygame."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled

__all__ = ["Window", "require_pygame"]


def require_pygame() -> None:
    """Refuses to go on without pygame.

    Raises:
        DependencyNotInstalled: pygame is missing; the message says what to install.
    """
    try:
        import pygame  # noqa: F401
    except ImportError as error:
        raise DependencyNotInstalled(
            'a window needs pygame: pip install "counterweight-env[render]"'
        ) from error


class Window:
    """One window, opened with the first frame. A copy of it has no window yet.

    Args:
        fps: Frames a second; a frame that differs from the one before waits for its time.
    """

    def __init__(self, fps: float) -> None:
        self.fps = fps
        self._screen: Any = None
        self._clock: Any = None
        self._shown: np.ndarray | None = None

    def show(self, frame: np.ndarray) -> None:
        """Shows a frame.

        Args:
            frame: (height, width, 3) uint8.

        Raises:
            DependencyNotInstalled: pygame is missing.
        """
        require_pygame()
        import pygame

        height, width = frame.shape[:2]
        if self._screen is None:
            pygame.display.init()
            pygame.display.set_caption("Counterweight")
            self._screen = pygame.display.set_mode((width, height))
            self._clock = pygame.time.Clock()
        same = self._shown is not None and np.array_equal(self._shown, frame)
        self._screen.blit(pygame.surfarray.make_surface(frame.swapaxes(0, 1)), (0, 0))
        pygame.event.pump()
        pygame.display.flip()
        if not same:
            self._clock.tick(self.fps)
        self._shown = frame

    def close(self) -> None:
        """Closes the window, if there is one."""
        if self._screen is not None:
            import pygame

            pygame.display.quit()
        self._screen = self._clock = self._shown = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Window, (self.fps,)
