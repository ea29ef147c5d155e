# SPDX-License-Identifier: Apache-2.0
"""environments/NAME.json: written once, told apart by digest, and no campaign continues in another environment."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.environments import (
    KnownEnvironment,
    keep_environments,
    read_environments,
    refuse_changed_environments,
)
from pybench.campaign.recipe import in_making_order, recipes_of
from pybench.case import Case
from pybench.errors import CorruptError, UsageError

OLD = KnownEnvironment("3.11.2", {"numpy": "2.4.6", "torch": "2.10.0", "pillow": "12.0"})
NEW = KnownEnvironment("3.11.2", {"numpy": "2.4.6", "torch": "2.11.0"})
INT8 = Case(workload="infer", model="digits-cnn", runtime="onnxruntime", precision="int8")


@pytest.fixture
def campaign(tmp_path: Path) -> CampaignDirectory:
    return CampaignDirectory(tmp_path)


def test_what_is_kept_is_read_again_and_more_is_added(campaign: CampaignDirectory) -> None:
    assert read_environments(campaign) == {}
    keep_environments(campaign, {})
    assert not list(campaign.path.iterdir())
    keep_environments(campaign, {"old": OLD})
    keep_environments(campaign, {"new": NEW})
    assert read_environments(campaign) == {"old": OLD, "new": NEW}


def test_of_runners_that_begin_together_all_but_one_environment_are_refused(campaign: CampaignDirectory) -> None:
    """Threads let go of the interpreter at each call of the system, so they interleave as processes do."""
    start = threading.Barrier(8)

    def begin(number: int) -> bool:
        start.wait()
        mine = KnownEnvironment("3.11.2", {"torch": f"2.{number}"})
        try:
            keep_environments(campaign, {"shared": mine, f"own-{number}": mine})
        except UsageError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(begin, range(8))) == 1
    assert set(read_environments(campaign)) == {"shared", *(f"own-{number}" for number in range(8))}


def test_the_digest_is_that_of_python_and_packages_in_any_order() -> None:
    turned = KnownEnvironment("3.11.2", dict(reversed(OLD.packages.items())))
    assert turned.sha256 == OLD.sha256 != NEW.sha256
    assert KnownEnvironment("3.11.3", OLD.packages).sha256 != OLD.sha256


def test_an_image_is_part_of_the_digest_and_of_the_file(campaign: CampaignDirectory) -> None:
    image, other = (KnownEnvironment(OLD.python, OLD.packages, f"sha256:{digit * 64}") for digit in "ab")
    assert len({OLD.sha256, image.sha256, other.sha256}) == 3
    keep_environments(campaign, {"mine": image})
    assert read_environments(campaign) == {"mine": image}
    assert "image" not in OLD.as_json()
    for changed, said in ((other, other.image), (OLD, "none")):
        with pytest.raises(UsageError, match=f"began: its image {image.image} is {said} now"):
            refuse_changed_environments(campaign, {"mine": changed})


def test_a_changed_environment_is_refused_and_what_changed_is_named(campaign: CampaignDirectory) -> None:
    keep_environments(campaign, {"mine": OLD})
    before = campaign.environment("mine").read_bytes()
    changed = KnownEnvironment("3.11.3", {"numpy": "2.5.0", "torch": "2.10.0", "six": "1.17"})
    for refuse in (keep_environments, refuse_changed_environments):
        with pytest.raises(UsageError) as raised:
            refuse(campaign, {"mine": changed})
        assert raised.value.message == (
            f"the environment mine has changed since {campaign.path} began: Python 3.11.2 is 3.11.3 now, "
            "numpy 2.4.6 is 2.5.0 now, pillow 12.0 was removed, six 1.17 was added"
        )
    assert campaign.environment("mine").read_bytes() == before
    many = KnownEnvironment("3.11.2", {f"package-{number}": "1" for number in range(9)})
    with pytest.raises(UsageError, match="package-2 1 was added and 8 more"):
        refuse_changed_environments(campaign, {"mine": many})


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content["packages"].update(numpy="9"),
        lambda content: content.pop("python"),
        lambda content: content.update(packages=[]),
        lambda content: content.update(image=f"sha256:{'a' * 64}"),
        lambda content: content.update(python=None),
    ],
)
def test_a_damaged_file_is_corrupt_and_not_replaced(
    campaign: CampaignDirectory, damage: Callable[[Any], object]
) -> None:
    keep_environments(campaign, {"mine": OLD})
    path = campaign.environment("mine")
    content = json.loads(path.read_text())
    damage(content)
    path.write_text(json.dumps(content))
    with pytest.raises(CorruptError):
        keep_environments(campaign, {"mine": OLD})
    assert json.loads(path.read_text()) == content


def test_all_that_a_case_opens_is_made_in_its_environment_and_anew_in_a_changed_one() -> None:
    inside = INT8.with_factors(environment="mine")
    own, old, new = recipes_of(INT8), recipes_of(inside, None, OLD.sha256), recipes_of(inside, None, NEW.sha256)
    made = [in_making_order(each) for each in (own, old, new)]
    assert len({recipe.digest for recipes in made for recipe in recipes}) == 3 * len(made[0]) > 3
    assert [{recipe.environment for recipe in recipes} for recipes in made] == [{None}, {"mine"}, {"mine"}]
    assert "environment" not in dict(own["model"].parameters)
    assert old["model"].title() == f"{own['model'].title()} environment=mine"
    elsewhere = recipes_of(INT8.with_factors(environment="other"), None, OLD.sha256)
    assert elsewhere["model"].digest != old["model"].digest
