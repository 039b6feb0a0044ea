"""Names of a profile's definitions in Dagster, which keep several profiles and a company's own definitions apart."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import dagster as dg

from fairness_pipeline.foundation.errors import FairnessError

_SETTINGS = "settings"


@dataclass(frozen=True)
class Names:
    """The names and owners of a profile's definitions, as `definitions.build_definitions` explains them."""

    key_prefix: tuple[str, ...] = ()
    group_prefix: str = ""
    owners: tuple[str, ...] = ()

    def asset(self, name: str) -> dg.AssetKey:
        """The key of an asset."""
        return dg.AssetKey([*self.key_prefix, name])

    def settings(self, name: str) -> dg.AssetKey:
        """The key of the observable source of what the asset `name` is made from besides other assets."""
        return dg.AssetKey([*self.key_prefix, _SETTINGS, name])

    def file(self, kind: str, name: str) -> dg.AssetKey:
        """The key of a YAML file."""
        return dg.AssetKey([*self.key_prefix, kind, name])

    def group(self, name: str) -> str:
        """The name of a group."""
        return self.group_prefix + name

    def other(self, name: str) -> str:
        """The name of a job, schedule, sensor, op or resource."""
        return "_".join((*self.key_prefix, name))

    def cursor(self, name: str) -> str:
        """The key under which an instance keeps what was reported of this profile."""
        return "/".join((name, *self.key_prefix))


def names(key_prefix: str | Sequence[str] | None, group_prefix: str | None, owners: str | Sequence[str]) -> Names:
    """Returns names from prefixes and owners as users write them.

    Raises:
        FairnessError: a prefix has other characters than Dagster allows in the name of a job or group.
    """
    prefix = (key_prefix,) if isinstance(key_prefix, str) else tuple(key_prefix or ())
    for parameter, value in (*(("key_prefix", part) for part in prefix), ("group_prefix", group_prefix or "_")):
        if not re.fullmatch(r"[A-Za-z0-9_]+", value):
            raise FairnessError(
                f"{parameter}: expected letters, digits and _, found '{value}'; a list has several parts"
            )
    owned = (owners,) if isinstance(owners, str) else tuple(owners)
    return Names(prefix, f"{group_prefix}_" if group_prefix else "", owned)
