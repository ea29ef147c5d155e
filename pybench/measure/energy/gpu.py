# SPDX-License-Identifier: Apache-2.0
"""What a session says of its GPU board: energy of a window, idle power around it, net and tail energy, and the budget.

Idle power is that of two windows without work, one before and one after; their difference is tested for drift. Net
energy is the window's less the mean idle power over its length, signed, never clipped. Tail energy is what the board
spends above the idle power after the window, until the idle window begins: memory and clocks settle, the sensor's own
lag is removed. What makes an idle window doubtful, such as another process, makes net and tail energy doubtful, too.
The budget says where each joule and each part of its uncertainty comes from, and what the plain methods say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import hypot, isfinite, sqrt
from typing import Any

import numpy as np

from pybench.catalogue.reasons import Reason, ReasonCode, invalidate
from pybench.catalogue.sensors import FUSED, PLAIN_METHODS
from pybench.measure.energy.integration import BOARD_GAIN, SCOPE, WindowEnergies, integrate
from pybench.measure.energy.profile import SensorProfile
from pybench.measure.energy.trace import Trace
from pybench.measure.quantity import Quantity
from pybench.measure.timing.windows import Window

METRIC = "gpu_energy_j"
NET = "gpu_net_energy_j"
DRIFT_SIGMAS = 2.0
DRIFT_RELATIVE = 0.02  # 1: an idle board wanders by 1 % between two windows of a second (H200)
_STATE = "board_state"


@dataclass(frozen=True, slots=True)
class BoardEnergy:
    """`quantities` by the name of their metric, `budget` for energy.json."""

    quantities: dict[str, Quantity]
    budget: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _IdlePower:
    """Mean power of a window without work; `u_w` without the board's state, which the drift test looks at."""

    power_w: float
    u_w: float
    begin_ns: int
    reasons: tuple[Reason, ...]


def board_energy(
    trace: Trace,
    window: Window,
    before: Window | None,
    after: Window | None,
    profile: SensorProfile,
    origin_ns: int,
    *,
    followed_by: str | None = None,
) -> BoardEnergy:
    """All of it for one window; `before`, `after`: windows without work around it; `followed_by`: a window with work
    between it and `after`. Times in the budget are seconds after `origin_ns`."""
    energies = _integrate(trace, [window], profile)
    quantity = to_quantity(energies, 0, window.name)
    idles = [None if idle is None else _idle_power(trace, idle, profile) for idle in (before, after)]
    quantities = {METRIC: quantity, **_idle_quantities(idles, (before, after))}
    budget: dict[str, Any] = {
        "window": window.name,
        "begin_s": (window.begin_ns - origin_ns) * 1e-9,
        "end_s": (window.end_ns - origin_ns) * 1e-9,
        "iterations": window.iterations,
        **describe(energies, 0),
        "plain_j": _plain(trace, window, profile),
        "idle_before_w": idles[0].power_w if idles[0] else None,
        "idle_after_w": idles[1].power_w if idles[1] else None,
    }
    first, last = idles
    if first is not None and last is not None:
        net = _net(quantity, window, first, last)
        tail = _tail(trace, window, last, profile, followed_by)
        quantities |= {NET: net, "gpu_tail_energy_j": tail}
        budget |= {"net_j": net.value, "u_net_j": net.u_standard, "tail_j": tail.value, "u_tail_j": tail.u_standard}
        budget |= {"tail_end_s": None if followed_by else (last.begin_ns - origin_ns) * 1e-9}
    return BoardEnergy(quantities, budget)


def describe(energies: WindowEnergies, index: int) -> dict[str, Any]:
    """One window's energy for JSON: numbers, null where there is none."""
    return {
        "method": energies.method,
        "scope": SCOPE,
        "energy_j": _known(energies.energy_j[index]),
        "u_within_j": _known(energies.u_within_j[index]),
        "u_absolute_j": _known(energies.u_absolute_j[index]),
        "parts_j": {name: _known(part[index]) for name, part in energies.parts.items()},
        "valid": bool(energies.valid[index]),
        "reasons": [str(reason) for reason in energies.reasons[index]],
    }


def to_quantity(energies: WindowEnergies, index: int, window: str) -> Quantity:
    """One window's energy as a metric."""
    energy_j, reasons = _known(energies.energy_j[index]), energies.reasons[index]
    if energy_j is None:
        return Quantity(window=window, method=energies.method, scope=SCOPE, reasons=reasons)
    return Quantity(
        value=energy_j,
        window=window,
        u_standard=_known(energies.u_within_j[index]),
        u_absolute=_known(energies.u_absolute_j[index]),
        method=energies.method,
        scope=SCOPE,
        valid=bool(energies.valid[index]),
        reasons=reasons,
    )


def _integrate(trace: Trace, windows: list[Window], profile: SensorProfile, method: str = FUSED) -> WindowEnergies:
    begins, ends = ([getattr(window, edge) for window in windows] for edge in ("begin_ns", "end_ns"))
    return integrate(trace, np.array(begins, np.int64), np.array(ends, np.int64), profile, method)


def _plain(trace: Trace, window: Window, profile: SensorProfile) -> dict[str, float | None]:
    return {name: _known(_integrate(trace, [window], profile, name).energy_j[0]) for name in PLAIN_METHODS}


def _idle_power(trace: Trace, window: Window, profile: SensorProfile) -> _IdlePower | None:
    energies = _integrate(trace, [window], profile)
    energy_j = _known(energies.energy_j[0])
    if energy_j is None:
        return None
    u_j = sqrt(sum(float(part[0]) ** 2 for name, part in energies.parts.items() if name != _STATE))
    reasons = _of_power(energies.reasons[0])
    return _IdlePower(energy_j / window.duration_s, u_j / window.duration_s, window.begin_ns, reasons)


def _of_power(reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """Those that end the validity of a power, or of a difference near zero, too.

    That a window is too short for 5 % of its joules is no such reason: the uncertainty of the difference tells it.
    """
    return tuple(one for one in reasons if one.code.invalidates and one.code is not ReasonCode.WINDOW_TOO_SHORT)


def _together(reasons: tuple[Reason, ...], *idles: _IdlePower) -> tuple[Reason, ...]:
    """The reasons of a window's energy, then those that only the idle windows have whose power is subtracted."""
    told = {one.code for one in reasons}
    of_rest = {one.code: one for idle in idles for one in idle.reasons if one.code not in told}
    return (*reasons, *(replace(one, detail=f"idle window: {one.detail}") for one in of_rest.values()))


def _idle_quantities(idles: list[_IdlePower | None], windows: tuple[Window | None, ...]) -> dict[str, Quantity]:
    names = ("gpu_idle_power_before_w", "gpu_idle_power_after_w")
    return {
        name: _fused(idle.power_w, idle.u_w, _with_gain(idle.u_w, idle.power_w), window, idle.reasons)
        for name, idle, window in zip(names, idles, windows, strict=True)
        if idle is not None and window is not None
    }


def _fused(value: float, u_standard: float, u_absolute: float, window: Window, reasons: tuple[Reason, ...]) -> Quantity:
    """A number of the fused channels, in J or W; valid unless a reason ends that."""
    return Quantity(
        value=value,
        window=window.name,
        u_standard=u_standard,
        u_absolute=u_absolute,
        method=FUSED,
        scope=SCOPE,
        valid=not invalidate(reasons),
        reasons=reasons,
    )


def _net(gross: Quantity, window: Window, before: _IdlePower, after: _IdlePower) -> Quantity:
    """Signed. The idle power in between is taken as somewhere between the two, rectangular."""
    if gross.value is None or gross.u_standard is None:
        return Quantity(window=window.name, method=FUSED, scope=SCOPE, reasons=gross.reasons)
    difference_w = after.power_w - before.power_w
    idle_w = (before.power_w + after.power_w) / 2
    u_idle_w = sqrt((before.u_w**2 + after.u_w**2) / 4 + difference_w**2 / 12)
    reasons = _together(gross.reasons, before, after)
    if abs(difference_w) > DRIFT_SIGMAS * hypot(before.u_w, after.u_w) + DRIFT_RELATIVE * idle_w:
        reasons += (
            Reason(ReasonCode.IDLE_DRIFT, f"{before.power_w:.4g} W idle before and {after.power_w:.4g} W after"),
        )
    u_j = hypot(gross.u_standard, u_idle_w * window.duration_s)
    value_j = gross.value - idle_w * window.duration_s
    gain_j = 0.0 if gross.u_absolute is None else sqrt(max(gross.u_absolute**2 - gross.u_standard**2, 0.0))
    # A gain scales the idle power as well, so of the gross gain's part only the net share stays.
    absolute_j = hypot(u_j, gain_j * abs(value_j / gross.value) if gross.value else 0.0)
    net = _fused(value_j, u_j, absolute_j, window, reasons)
    return replace(net, valid=bool(gross.valid and net.valid))


def _tail(trace: Trace, window: Window, idle: _IdlePower, profile: SensorProfile, followed_by: str | None) -> Quantity:
    if followed_by is not None or idle.begin_ns <= window.end_ns:
        why = f"the window {followed_by} follows" if followed_by else "the idle window begins where the window ends"
        reason = Reason(ReasonCode.NO_TAIL, why)
        return Quantity(window=window.name, method=FUSED, scope=SCOPE, reasons=(reason,))
    rest = Window("tail", window.end_ns, idle.begin_ns, 0)
    energies = _integrate(trace, [rest], profile)
    energy_j = _known(energies.energy_j[0])
    if energy_j is None:
        return Quantity(window=window.name, method=FUSED, scope=SCOPE, reasons=energies.reasons[0])
    u_j = hypot(float(energies.u_within_j[0]), idle.u_w * rest.duration_s)
    value_j = energy_j - idle.power_w * rest.duration_s
    reasons = _together(_of_power(energies.reasons[0]), idle)
    return _fused(value_j, u_j, _with_gain(u_j, value_j), window, reasons)


def _with_gain(u_within: float, value: float) -> float:
    """The absolute standard uncertainty of a power or of a difference of energies: a gain scales the difference."""
    return hypot(u_within, BOARD_GAIN * abs(value) / sqrt(3))


def _known(value: Any) -> float | None:
    number = float(value)
    return number if isfinite(number) else None
