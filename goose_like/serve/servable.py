"""A profile as it may be offered to strangers: without the toolkits that touch this machine, but for those named."""

from collections.abc import Collection

from goose_like.agent.goose09 import load_toolkit
from goose_like.config.profile import Profile, ToolkitChoice
from goose_like.core.entry_points import did_you_mean
from goose_like.core.errors import ProfileError

_OPENBB = "openbb"


def servable(profile: Profile, named: Collection[str]) -> tuple[Profile, tuple[str, ...]]:
    """The profile without the toolkits that touch the machine, but for the `named` ones, and what was left out.

    The toolkit `openbb` is in it, whether the profile lists it or not.

    Raises:
        ProfileError: a toolkit needs one that was left out, or a named one is not in the profile.
        GooseLikeError: a toolkit can't be imported.
    """
    listed = [choice.name for choice in profile.toolkits]
    for name in named:
        if name not in (*listed, _OPENBB):
            raise ProfileError(f"--toolkit {name}: profile {profile.name!r} has no such toolkit; {_near(name, listed)}")
    kept = [choice for choice in profile.toolkits if choice.name in named or not _touches_machine(choice)]
    left_out = tuple(name for name in listed if name not in {choice.name for choice in kept})
    for index, choice in enumerate(profile.toolkits):
        for alias, needed in choice.requires.items() if choice in kept else ():
            if needed in left_out:
                raise ProfileError(
                    f"toolkit {choice.name!r} requires {needed!r}, which touches this machine and is left out; "
                    f"add --toolkit {needed} to offer it to whoever asks, or take {choice.name!r} out of the profile",
                    ("toolkits", index, "requires", alias),
                )
    if _OPENBB not in listed:
        kept.append(ToolkitChoice(name=_OPENBB))
    return profile.model_copy(update={"toolkits": tuple(kept)}), left_out


def _touches_machine(choice: ToolkitChoice) -> bool:
    return load_toolkit(choice.name).touches_machine


def _near(name: str, listed: Collection[str]) -> str:
    return did_you_mean(name, listed) if listed else "it has none"
