# SPDX-License-Identifier: Apache-2.0
"""One value of one factor: what is wrong with it, and its canonical form. Everything comes from `FACTORS`.

Files are only looked at as names here; whether they exist is `pybench.plan.files`' question.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence

from pybench.case.factor import Factor
from pybench.case.factors import FACTORS
from pybench.catalogue.heads import rates_of
from pybench.catalogue.runtimes import DEVICES
from pybench.catalogue.zoo import as_file, is_named
from pybench.document import Plain, Scalar, Unplaced
from pybench.document.keys import described
from pybench.onnx_file.inputs import parse_sizes, sizes_text
from pybench.plan.packages import install_hint

Value = Scalar  # of a factor, canonical
Json = Scalar | Sequence["Json"] | Mapping[str, "Json"]  # what is written of a plan

LARGEST_INTEGER = 2**53  # every JSON reader keeps integers up to here

_CPUS = re.compile(r"\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*")
_DEVICE = re.compile("|".join(DEVICES) + r"|(GPU|MIG)-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_AS_SIZES = "as in {image: {height: 224}}, or image.height=224"
_TRUTHS = {"on": "true", "yes": "true", "y": "true", "off": "false", "no": "false", "n": "false"}


class ValueProblem(Unplaced):
    """What is wrong with a value."""


def nearest(name: object, names: Iterable[str]) -> str | None:
    """`did you mean ...?` for the valid name that looks most like this one, or None."""
    given = str(name)
    known = {known.lower(): known for known in names}
    close = difflib.get_close_matches(given.lower(), known, 1, cutoff=0.6)
    begun = [name for name in known if len(given) > 2 and name.startswith(given.lower())]  # `warmup`
    found = close or begun
    return f"did you mean `{known[found[0]]}`?" if found else None


def nearest_option(name: str, names: Iterable[str]) -> str | None:
    """The same for a name with a dot, which no factor of pybench has."""
    return nearest(name, [known for known in names if "." in known])


def nearest_row(factor: Factor, value: object) -> str | None:
    """The hint for a name that nothing has: the nearest one; where packages can add names, that one may be missing."""
    near = nearest(value, factor.choices)
    if factor.rows is None or not isinstance(value, str):
        return near
    install = install_hint(value)
    return f"{near} Or {install}" if near else install


def check_value(factor: Factor, value: Plain) -> Value:
    """The canonical form of a value; raises ValueProblem naming the valid range."""
    if value is None and may_be_null(factor):
        return None
    match factor.kind:
        case "choice":
            return _choice(factor, value)
        case "integer":
            return _integer(factor, value)
        case "number":
            return _number(factor, value)
        case "boolean":
            return _boolean(factor, value)
        case "file":
            return _file(factor, value)
        case "text":
            return _text(factor, value)


def may_be_null(factor: Factor) -> bool:
    """Whether null is a value: where it is the default, save for what a case cannot be without."""
    return factor.name in FACTORS and factor.default is None and factor.name != "workload"


def bounds_ms(value: Plain) -> tuple[float, ...]:
    """The bounds of `slo_ms`: one or a list. Raises ValueProblem for what is no time."""
    bounds = value if isinstance(value, list) else [value]
    if not bounds:
        raise ValueProblem("`slo_ms` is an empty list", "give a bound in ms, or remove the key")
    return tuple(_bound_ms(bound) for bound in bounds)


def _bound_ms(value: Plain) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf"):
        return float(value)
    hint = "as in `slo_ms: 50` or `slo_ms: [20, 50]`"
    raise ValueProblem(f"`slo_ms` takes milliseconds above 0, or a list of them; not {described(value)}", hint)


def _choice(factor: Factor, value: Plain) -> str:
    if isinstance(value, str) and value in factor.choices:
        return value
    what = f"`{factor.name}` takes one of {', '.join(factor.choices)}; not {described(value)}"
    raise ValueProblem(what, nearest_row(factor, value))


def _integer(factor: Factor, value: Plain) -> int:
    least, most = int(factor.minimum or 0), int(factor.maximum or LARGEST_INTEGER)
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        if value % factor.step:
            what = f"`{factor.name}` takes a multiple of {factor.step}; not {value}"
            raise ValueProblem(what, f"write {max(least, value // factor.step * factor.step)}")
        return value
    is_whole = isinstance(value, float) and value.is_integer() and least <= value <= min(most, 1e15)
    hint = f"write {value:.0f}" if is_whole else factor.hint
    raise ValueProblem(f"`{factor.name}` takes an integer from {least} to {most}; not {described(value)}", hint)


def _number(factor: Factor, value: Plain) -> float:
    least, most = factor.minimum or 0.0, factor.maximum or LARGEST_INTEGER
    if isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most:
        return float(value)
    is_large = isinstance(value, int | float) and value > most
    takes = f"from {least:g} to {most:g}" if is_large or factor.maximum is not None else f"of at least {least:g}"
    raise ValueProblem(f"`{factor.name}` takes a number {takes}; not {described(value)}")


def _boolean(factor: Factor, value: Plain) -> bool:
    if isinstance(value, bool):
        return value
    meant = _TRUTHS.get(str(value).lower())
    hint = f"in YAML 1.2 `{value}` is text: write {meant}" if meant else None
    raise ValueProblem(f"`{factor.name}` takes true or false; not {described(value)}", hint)


def _file(factor: Factor, value: Plain) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        built_in = f"{', '.join(factor.choices)}, or a path" if factor.choices else "a path"
        raise ValueProblem(f"`{factor.name}` takes {built_in}; not {described(value)}")
    if value in factor.choices:
        return value
    path = posixpath.normpath(value)
    if factor.name != "model":
        return path
    return value if is_named(value) else as_file(path)


def _text(factor: Factor, value: Plain) -> str:
    match factor.form:
        case "cpus":
            return _cpus(factor, value)
        case "device":
            return _device(factor, value)
        case "pattern":
            return _pattern(factor, value)
        case "word":
            return _word(factor, value)
        case "name":
            return _name(factor, value)
        case "sizes":
            return _sizes(factor, value)
        case "rates":
            return _rates(factor, value)


def _cpus(factor: Factor, value: Plain) -> str:
    """CPU lists as taskset writes them; a single CPU may be an integer."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not _CPUS.fullmatch(text):
        raise ValueProblem(f"`{factor.name}` takes CPUs such as `0-3,8`; not {described(value)}")
    for span in text.split(","):
        first, _, last = span.partition("-")
        if last and int(first) > int(last):
            what = f"`{factor.name}` has the span {span}, which ends before it begins"
            raise ValueProblem(what, f"write {last}-{first}")
    return text


def _rates(factor: Factor, value: Plain) -> str:
    """Rates as `30,10`; a single rate may be a number."""
    text = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    try:
        rates = rates_of(text) if isinstance(text, str) else ()
    except ValueError:
        rates = ()
    if not rates:
        raise ValueProblem(f"`{factor.name}` takes rates above 0 such as `30,10`; not {described(value)}")
    return ",".join(f"{rate:.12g}" for rate in rates)


def _device(factor: Factor, value: Plain) -> str:
    if isinstance(value, str) and _DEVICE.fullmatch(value):
        return value
    hint = "write cuda" if value == "gpu" else nearest(value, DEVICES)
    raise ValueProblem(
        f"`{factor.name}` takes {', '.join(DEVICES)} or a GPU's UUID (GPU-...); not {described(value)}",
        hint or "`nvidia-smi -L` lists the UUIDs",
    )


def _name(factor: Factor, value: Plain) -> str:
    """Any text that can be read: names in a file may have spaces and slashes."""
    if isinstance(value, str) and value.strip() and value.isprintable():
        return value
    raise ValueProblem(f"`{factor.name}` takes a name; not {described(value)}", "put it in quotes")


def _pattern(factor: Factor, value: Plain) -> str:
    """A regular expression, as Python's `re` reads it."""
    if not isinstance(value, str) or not value:
        raise ValueProblem(f"`{factor.name}` takes a regular expression; not {described(value)}", "as in `.*/fc/.*`")
    try:
        re.compile(value)
    except re.error as error:
        what = f"`{factor.name}` takes a regular expression; {described(value)} is not valid: {error}"
        raise ValueProblem(what) from error
    return value


def _sizes(factor: Factor, value: Plain) -> str:
    """`INPUT.DIM=N`, several of them with commas, in the order of their names."""
    if not isinstance(value, str):
        raise ValueProblem(f"`{factor.name}` takes sizes of dimensions; not {described(value)}", _AS_SIZES)
    try:
        return sizes_text(parse_sizes(value))
    except ValueError as error:
        raise ValueProblem(f"`{factor.name}`: {error}", _AS_SIZES) from error


def _word(factor: Factor, value: Plain) -> str:
    if not isinstance(value, str) or not value:
        raise ValueProblem(f"`{factor.name}` takes a word; not {described(value)}", factor.hint)
    return value


PSEUDO_FACTORS = {
    "batch_tokens": Factor(
        name="batch_tokens",
        kind="integer",
        default=None,
        meaning="tokens in an iteration of a language model, in place of `batch`: batch = batch_tokens / seq_len",
        group=FACTORS["seq_len"].group,
        minimum=2,
    ),
}
