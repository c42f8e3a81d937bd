"""`carrick completion`: what a shell needs to complete commands and options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from carrick.cli.printing import print_line

Shell = Literal["bash", "zsh", "fish"]


def completion_of(script: Callable[[Shell], str]) -> Callable[[Shell], int]:
    """The command; `script` knows all the others."""

    def completion(shell: Shell, /) -> int:
        """Print the completion script of a shell.

        bash: source <(carrick completion bash); zsh: carrick completion zsh > a file _carrick in your fpath;
        fish: carrick completion fish > ~/.config/fish/completions/carrick.fish

        Parameters
        ----------
        shell
            Which shell.
        """
        print_line(script(shell).rstrip("\n"))
        return 0

    return completion
