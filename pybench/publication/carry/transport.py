# SPDX-License-Identifier: Apache-2.0
"""Requests to a registry: TLS, timeouts, redirects, logins, and trying again what may pass.

On urllib3, which brings TLS, timeouts and proxies and depends on nothing. What fails for a moment (a connection, a
timeout, 429, 5xx) raises `TransientError`, and `patiently` does that step again after a pause. Passwords go to the
registry itself, over TLS or on this machine, and to the token service that it names, over TLS; never along a redirect.
Nothing goes from TLS to plain.
"""

from __future__ import annotations

import contextlib
import json
import re
import ssl
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, TypeVar
from urllib.parse import unquote, urlencode, urljoin, urlsplit

import urllib3
from urllib3.util import parse_url

from pybench.errors import CorruptError, PybenchError, UsageError
from pybench.publication.carry import credentials
from pybench.publication.carry.reference import RegistryReference

CHUNK_BYTES = 1 << 20
OK, CREATED, ACCEPTED, PARTIAL = 200, 201, 202, 206
UNAUTHORISED, FORBIDDEN, NOT_FOUND, BAD_RANGE = 401, 403, 404, 416
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_LARGEST_ANSWER_BYTES = 1 << 20
_CONNECT_S = 10.0
_TRIES = 4
_FIRST_PAUSE_S = 0.5  # doubled after each try
_LONGEST_PAUSE_S = 30.0  # also where a registry asks for more
_MOST_REDIRECTS = 5
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')

Answer = urllib3.BaseHTTPResponse
Body = Callable[[], bytes | IO[bytes]]
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class RegistryAccess:
    """How to reach a registry.

    plain_http: whether it is spoken to without TLS; None: only if it is on this machine
    timeout_s: how long it may send no byte
    """

    plain_http: bool | None = None
    timeout_s: float = 60.0


class TransientError(Exception):
    """Something that another try may mend. `pause_s`: what the registry asks us to wait."""

    def __init__(self, why: str, pause_s: float | None = None) -> None:
        super().__init__(why)
        self.pause_s = pause_s


class Transport:
    """The way to one repository. `actions`: what a token is asked for, `pull` or `pull,push`."""

    def __init__(self, reference: RegistryReference, access: RegistryAccess, actions: str) -> None:
        plain = reference.is_loopback if access.plain_http is None else access.plain_http
        self._reference = reference
        self._root = f"{'http' if plain else 'https'}://{_address(reference.host)}"
        self._scope = f"repository:{reference.repository}:{actions}"
        self._authorization: str | None = None
        timeout = urllib3.Timeout(connect=min(_CONNECT_S, access.timeout_s), read=access.timeout_s)
        self._pool = _pool(self._root, timeout)

    def url(self, path: str) -> str:
        """Of something in the repository."""
        return f"{self._root}/v2/{self._reference.repository}/{path}"

    def ask(self, method: str, url: str, headers: Mapping[str, str] | None = None, body: Body | None = None) -> Answer:
        """One request, with a login where the registry wants one. `body` makes the body anew for each time it is
        sent."""
        answer = self._follow(method, url, headers or {}, body)
        if answer.status == UNAUTHORISED:
            self._log_in(answer)
            answer = self._follow(method, url, headers or {}, body)
        if answer.status in (UNAUTHORISED, FORBIDDEN):
            raise PybenchError(
                f"{self._reference.host} does not allow that for {self._reference.repository}: {said(answer)}",
                hint=f"log in with `skopeo login {self._reference.host}` (or docker, podman), and check the name",
            )
        if answer.status in _PASSING:
            raise TransientError(f"it answered {answer.status}: {said(answer)}", _retry_after(answer))
        return answer

    def patiently(self, what: str, step: Callable[[], _Result]) -> _Result:
        """Does a step, again after a pause where something passing went wrong."""
        pause_s = _FIRST_PAUSE_S
        for attempt in range(1, _TRIES + 1):
            try:
                return step()
            except TransientError as trouble:
                if attempt == _TRIES:
                    raise PybenchError(
                        f"{self._reference.host} failed {_TRIES} times at {what}: {trouble}",
                        hint="check the name and the network, then run the same command again: it continues",
                    ) from trouble
                time.sleep(min(max(pause_s, trouble.pause_s or 0.0), _LONGEST_PAUSE_S))
                pause_s *= 2
        raise AssertionError("the last try returns or raises")

    def onward(self, answer: Answer, asked: str) -> str:
        """Where an answer leads to; never from TLS to plain."""
        url = urljoin(asked, answer.headers.get("Location", asked))
        if urlsplit(url).scheme not in ("https", urlsplit(self._root).scheme):
            raise PybenchError(f"{self._reference.host} redirects to an address without TLS: {shown(url)}")
        return url

    def failure(self, what: str, answer: Answer) -> PybenchError:
        """An answer that no further try will change."""
        return PybenchError(f"{self._reference.host} did not {what}: {answer.status}, {said(answer)}")

    def _follow(self, method: str, url: str, headers: Mapping[str, str], body: Body | None) -> Answer:
        """Follows redirects to where blobs are stored, without the login."""
        for _ in range(_MOST_REDIRECTS):
            own = url.startswith(f"{self._root}/")
            login = {"Authorization": self._authorization} if own and self._authorization else {}
            answer = self._send(method, url, {**headers, **login}, body)
            if answer.status not in _REDIRECTS or "Location" not in answer.headers:
                return answer
            answer.drain_conn()
            url = self.onward(answer, url)
        raise PybenchError(f"{self._reference.host} redirects too often: {shown(url)}")

    def _send(self, method: str, url: str, headers: Mapping[str, str], body: Body | None) -> Answer:
        content = None if body is None else body()
        try:
            return self._pool.request(
                method,
                url,
                headers={"User-Agent": "pybench", **headers},
                body=content,
                retries=False,
                redirect=False,
                preload_content=False,
            )
        except urllib3.exceptions.SSLError as error:
            raise PybenchError(
                f"no TLS with {urlsplit(url).netloc}: {shown(str(error))}",
                hint="without TLS add --plain-http; for a private certificate authority set SSL_CERT_FILE",
            ) from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise TransientError(_reason(error)) from error
        finally:
            if content is not None and not isinstance(content, bytes):
                content.close()

    # --- logging in --------------------------------------------------------------------------------------------------

    def _log_in(self, answer: Answer) -> None:
        """Answers a challenge: a name and password at once, or a token for them from the service that is named."""
        scheme, _, rest = answer.headers.get("WWW-Authenticate", "").partition(" ")
        answer.drain_conn()
        known = credentials.find(self._reference.host, self._reference.repository)
        if scheme.lower() == "basic":
            self._authorization = known.basic() if known else None
        elif scheme.lower() == "bearer":
            self._authorization = f"Bearer {self._token(dict(_CHALLENGE.findall(rest)), known)}"

    def _token(self, challenge: Mapping[str, str], known: credentials.Credentials | None) -> str:
        realm = challenge.get("realm", "")
        if urlsplit(realm).scheme not in ("https", urlsplit(self._root).scheme):
            raise PybenchError(f"{self._reference.host} asks for a login without TLS, at {shown(realm)}")
        answer = self._ask_token(realm, {"service": challenge.get("service", ""), "scope": self._scope}, known)
        if answer.status in _PASSING:
            raise TransientError(f"its token service answered {answer.status}", _retry_after(answer))
        stored = _json(content_of(answer, _LARGEST_ANSWER_BYTES)) if answer.status == OK else {}
        token = stored.get("token") or stored.get("access_token")
        if not isinstance(token, str) or not token.isprintable() or not token:
            raise PybenchError(
                f"{urlsplit(realm).netloc} gives no token for {self._reference.repository} ({answer.status})",
                hint=f"log in with `skopeo login {self._reference.host}` (or docker, podman)",
            )
        return token

    def _ask_token(self, realm: str, wanted: Mapping[str, str], known: credentials.Credentials | None) -> Answer:
        if known is not None and not known.name:  # an identity token: OAuth 2
            grant = {"grant_type": "refresh_token", "refresh_token": known.password, "client_id": "pybench"}
            form = urlencode({**wanted, **grant}).encode()
            return self._send("POST", realm, {"Content-Type": "application/x-www-form-urlencoded"}, lambda: form)
        login = {"Authorization": known.basic()} if known else {}
        return self._send("GET", with_query(realm, wanted), login, None)


def chunks_of(answer: Answer) -> Iterator[bytes]:
    """A body, piece by piece; `TransientError` where it breaks off."""
    try:
        yield from answer.stream(CHUNK_BYTES, decode_content=False)
    except (urllib3.exceptions.HTTPError, TimeoutError, ConnectionError) as error:
        raise TransientError(_reason(error)) from error


def content_of(answer: Answer, limit: int) -> bytes:
    """A whole body of at most `limit` bytes."""
    content = b""
    for chunk in chunks_of(answer):
        content += chunk
        if len(content) > limit:
            answer.close()
            raise CorruptError(f"a registry's answer has more than {limit} bytes")
    return content


def with_query(url: str, values: Mapping[str, str]) -> str:
    return f"{url}{'&' if urlsplit(url).query else '?'}{urlencode(values)}"


def said(answer: Answer) -> str:
    """The registry's own words, as far as they are fit for a terminal."""
    content = b""
    with contextlib.suppress(TransientError, CorruptError):
        content = content_of(answer, _LARGEST_ANSWER_BYTES)
    errors = _json(content).get("errors")
    first = errors[0] if isinstance(errors, list) and errors and isinstance(errors[0], dict) else {}
    return shown(str(first.get("message") or first.get("code") or answer.reason or "no reason given"))


def shown(text: str) -> str:
    """A stranger's words on one line, without control characters."""
    return "".join(sign for sign in text[:200] if sign.isprintable())


def _pool(root: str, timeout: urllib3.Timeout) -> urllib3.PoolManager:
    """Connections, through the proxy that the environment names."""
    parts = urlsplit(root)
    proxy = urllib.request.getproxies().get(parts.scheme)
    options: dict[str, Any] = {"timeout": timeout, "ssl_context": ssl.create_default_context()}
    if not proxy or urllib.request.proxy_bypass(parts.netloc):
        return urllib3.PoolManager(**options)
    try:
        named = parse_url(proxy if "://" in proxy else f"http://{proxy}")  # as curl reads it
        if not named.host:
            raise urllib3.exceptions.LocationValueError("no host")
        return urllib3.ProxyManager(named._replace(auth=None).url, proxy_headers=_proxy_login(named.auth), **options)
    except urllib3.exceptions.HTTPError as error:
        raise UsageError(
            f"{parts.scheme}_proxy in the environment is not a usable proxy",
            hint=f"set it to http://HOST:PORT or https://HOST:PORT, or add {parts.netloc} to no_proxy",
        ) from error


def _proxy_login(auth: str | None) -> Mapping[str, str] | None:
    if auth is None:
        return None
    name, _, password = auth.partition(":")
    return {"proxy-authorization": credentials.Credentials(unquote(name), unquote(password)).basic()}


def _address(host: str) -> str:
    return "registry-1.docker.io" if host in ("docker.io", "index.docker.io") else host


def _json(content: bytes) -> dict[str, Any]:
    try:
        stored = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return stored if isinstance(stored, dict) else {}


def _reason(error: Exception) -> str:
    if isinstance(error, urllib3.exceptions.NameResolutionError):
        return "no such host"
    if isinstance(error, urllib3.exceptions.NewConnectionError):
        return f"no connection ({shown(str(error).rpartition(': ')[2])})"
    if isinstance(error, urllib3.exceptions.TimeoutError | TimeoutError):
        return "it did not answer in time"
    return f"the connection broke ({shown(str(error))})"


def _retry_after(answer: Answer) -> float | None:
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else None
