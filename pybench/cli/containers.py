# SPDX-License-Identifier: Apache-2.0
"""What starts the workers: this machine, or containers of images."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pybench.campaign.environments import PlannedEnvironment
from pybench.case import Case
from pybench.cli.show import say
from pybench.errors import UsageError
from pybench.launcher import Container, Launcher, LocalLauncher, named_engine, open_container, require_installed


def launcher_for(container: str | None, engine: str | None, cases: Iterable[Case] = ()) -> Launcher:
    """What starts the workers. Without an image `engine` need not be installed, as PYBENCH_ENGINE may always be set.

    Raises UsageError for a name that no engine has, and what `open_container` raises."""
    if engine is not None:
        named_engine(engine)
    if container is not None:
        refuse_environments(cases)
        return open_container(container, engine, say)
    return LocalLauncher()


def image_opener(
    engine: str | None, cases: Iterable[Case], planned: Mapping[str, PlannedEnvironment]
) -> Callable[[str], Container]:
    """What opens the images of a plan's environments; it says which engine runs each.

    Raises UsageError where cases run in images and the engine that was asked for is not installed."""
    if engine is not None and _images_of(cases, planned):
        require_installed(named_engine(engine))
    return lambda image: open_container(image, engine, say)


def refuse_environments(cases: Iterable[Case]) -> None:
    """Raises UsageError for cases in environments of the plan, where everything runs in one image."""
    if any(case.environment is not None for case in cases):
        raise UsageError(
            "the plan's environments say where cases run, and all were to run in one image",
            hint="use no image but those of the plan (`environments: {NAME: {image: IMAGE@sha256:DIGEST}}`), or select "
            "cases without environment: `--filter environment=null`",
        )


def refuse_images(cases: Iterable[Case], planned: Mapping[str, PlannedEnvironment]) -> None:
    """Raises UsageError for cases whose environment is an image, where the runner is in a container itself."""
    if images := _images_of(cases, planned):
        raise UsageError(
            f"a pod of Kubernetes starts no containers, and the plan's environments have images: {', '.join(images)}",
            hint="submit a campaign for each image, with the image in the site file, and compare them",
        )


def _images_of(cases: Iterable[Case], planned: Mapping[str, PlannedEnvironment]) -> list[str]:
    """Names of the environments in which these cases run and that are images."""
    used = {case.environment for case in cases}
    return [name for name, one in planned.items() if one.image is not None and name in used]


def not_here(planned: Mapping[str, PlannedEnvironment]) -> dict[str, str]:
    """Those environments whose interpreter or image is a file that is not on this machine, with its path."""
    paths = {name: one.path for name, one in planned.items()}
    return {name: str(path) for name, path in paths.items() if path is not None and not path.exists()}
