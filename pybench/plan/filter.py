# SPDX-License-Identifier: Apache-2.0
"""`--filter`: which cases of a plan, as in `workload=infer, precision in int8|fp16, batch>=8`.

Comparisons of a factor with a value, joined by commas or `and`; all have to hold. `=` (or `==`), `!=`, `<`, `<=`, `>`,
`>=`, and `in` with values separated by `|`. Values are those of the plan, in quotes where they hold a space, a comma or
another sign of this language. `null` is a factor that is not set, or changes nothing about the case; it is neither
smaller nor larger than anything.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pybench.case import Case
from pybench.case.factor import Factor
from pybench.case.factors import FACTORS
from pybench.document import core_scalar
from pybench.errors import UsageError
from pybench.plan.meaning import applies
from pybench.plan.values import Value, ValueProblem, check_value, nearest, nearest_option

_TOKEN = re.compile(r"""\s*(?:(?P<sign>==|!=|<=|>=|=|<|>|,|\|)|(?P<quoted>"[^"]*"|'[^']*')|(?P<word>[^\s=!<>,|"']+))""")
_ORDERS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SIGNS = ("=", "==", "!=", *_ORDERS, "in")


@dataclass(frozen=True, slots=True)
class FilterTerm:
    """One comparison: the factor's value against one value, or several for `in`."""

    factor: str
    sign: str
    values: tuple[Value, ...]

    def holds(self, case: Case) -> bool:
        value = case.value(self.factor) if applies(self.factor, case) else None
        if self.sign in _ORDERS:
            bound = self.values[0]
            return (
                isinstance(value, int | float) and isinstance(bound, int | float) and _ORDERS[self.sign](value, bound)
            )
        return (value in self.values) != (self.sign == "!=")


def parse_filter(expression: str, factors: Mapping[str, Factor] = FACTORS) -> Callable[[Case], bool]:
    """Whether a case is selected, as a function. Raises UsageError naming the position in the expression."""
    comparisons = tuple(_Parser(expression, factors).comparisons())
    return lambda case: all(comparison.holds(case) for comparison in comparisons)


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    position: int
    is_sign: bool
    is_quoted: bool = False


class _Parser:
    def __init__(self, expression: str, factors: Mapping[str, Factor]) -> None:
        self._factors = factors
        self._expression = expression
        self._tokens = list(self._split())
        self._next = 0

    def comparisons(self) -> Iterator[FilterTerm]:
        """Every comparison of the expression."""
        while True:
            yield self._comparison()
            joint = self._take()
            if joint is None:
                return
            if joint.text not in (",", "and"):
                raise self._error(joint, f"expected a comma or `and`, not `{joint.text}`")

    def _split(self) -> Iterator[_Token]:
        position = 0
        text = self._expression.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                start = position + len(text[position:]) - len(text[position:].lstrip())
                raise self._error(_Token(text[start], start, True), f"cannot read `{text[start:]}`")
            kind = match.lastgroup or ""
            found = match[kind]
            yield _Token(
                found.strip("\"'") if kind == "quoted" else found, match.start(kind), kind == "sign", kind == "quoted"
            )
            position = match.end()

    def _take(self) -> _Token | None:
        token = self._tokens[self._next] if self._next < len(self._tokens) else None
        self._next += 1
        return token

    def _comparison(self) -> FilterTerm:
        name = self._take()
        if name is None or name.is_sign:
            raise self._error(name, "expected a factor", "as in `precision=int8`")
        factor = self._factors.get(name.text)
        if factor is None:
            near = nearest_option if "." in name.text else nearest
            hint = near(name.text, self._factors) or f"factors: {', '.join(self._factors)}"
            raise self._error(name, f"unknown factor `{name.text}`", hint)
        sign = self._take()
        if sign is None or sign.text not in _SIGNS:
            raise self._error(sign, f"expected one of {', '.join(_SIGNS)} after `{factor.name}`")
        if sign.text in _ORDERS and factor.kind not in ("integer", "number"):
            raise self._error(sign, f"`{factor.name}` has no order", "use = or !=")
        values = [self._value(factor, sign.text)]
        while sign.text == "in" and self._next < len(self._tokens) and self._tokens[self._next].text == "|":
            self._next += 1
            values.append(self._value(factor, sign.text))
        return FilterTerm(factor.name, sign.text, tuple(values))

    def _value(self, factor: Factor, sign: str) -> Value:
        token = self._take()
        if token is None or token.is_sign:
            turned = f"{token.text}{sign}" if token is not None else ""
            hint = f"did you mean `{turned}`?" if turned in _SIGNS else None
            raise self._error(token, f"expected a value of `{factor.name}`", hint)
        if not token.is_quoted and token.text[0] in "([":
            hint = f"separate values by |, as in `{factor.name} in A|B`"
            raise self._error(token, f"expected a value of `{factor.name}`, not a list in brackets", hint)
        try:
            return check_value(factor, token.text if token.is_quoted else core_scalar(token.text))
        except ValueProblem as problem:
            raise self._error(token, problem.what, problem.hint) from problem
        except ValueError as error:
            raise self._error(token, f"`{factor.name}`: a number of too many digits") from error

    def _error(self, token: _Token | None, what: str, hint: str | None = None) -> UsageError:
        position = len(self._expression) if token is None else token.position
        said = f"--filter, column {position + 1}: {what}\n    {self._expression}\n    {' ' * position}^"
        return UsageError(said, hint=hint)
