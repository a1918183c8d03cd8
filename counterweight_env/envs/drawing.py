"""What the environments share to draw their games."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from counterweight_env.scene import Scene, scene_of

if TYPE_CHECKING:
    import numpy as np

    from counterweight_env.game import Game
    from counterweight_env.shapes import Picture
    from counterweight_env.view import View
    from counterweight_env.window import Window

__all__ = ["Drawer", "check_render_mode", "drawer_for"]

#: The render modes that draw a picture.
PICTURE_MODES: Final = ("rgb_array", "human")


def check_render_mode(render_mode: str | None, metadata: dict[str, Any]) -> str | None:
    """Refuses an unknown render mode, and one for which a package is missing.

    Raises:
        DependencyNotInstalled: The mode needs a package that is not installed.
        ValueError: The mode is not among the environment's.
    """
    if render_mode is not None and render_mode not in metadata["render_modes"]:
        modes = metadata["render_modes"]
        raise ValueError(f"render_mode must be None or one of {modes}, got {render_mode!r}")
    if render_mode in PICTURE_MODES:
        from counterweight_env.raster import require_pillow

        require_pillow()
    if render_mode == "human":
        from counterweight_env.window import require_pygame

        require_pygame()
    return render_mode


def drawer_for(render_mode: str | None, metadata: dict[str, Any]) -> Drawer | None:
    """A drawer, if the mode draws pictures."""
    return Drawer(metadata["render_fps"]) if render_mode in PICTURE_MODES else None


class Drawer:
    """Draws one game, with dots on what is new since the turn before; may have a window.

    Args:
        fps: Frames a second of the window.
    """

    def __init__(self, fps: float) -> None:
        self._fps = fps
        self._before: Scene | None = None
        self._turn_start: Scene | None = None
        self._window: Window | None = None

    def begin(self, position: Game | View) -> None:
        """Takes note of a new game."""
        self._before = None
        self._turn_start = scene_of(position)

    def follow(self, position: Game | View) -> None:
        """Takes note of a step of the game."""
        if self._turn_start is None or position.turn != self._turn_start.turn:
            self._before = self._turn_start
            self._turn_start = scene_of(position)

    def _picture(self, position: Game | View) -> Picture:
        from counterweight_env.picture import table_picture

        return table_picture(position, self._before)

    def pixels(self, position: Game | View) -> np.ndarray:
        """(672, 720, 3) uint8."""
        from counterweight_env.raster import pixels

        return pixels(self._picture(position))

    def show(self, position: Game | View) -> None:
        """Shows the game in the window."""
        from counterweight_env.window import Window

        if self._window is None:
            self._window = Window(self._fps)
        self._window.show(self.pixels(position))

    def close(self) -> None:
        """Closes the window, if there is one."""
        if self._window is not None:
            self._window.close()
