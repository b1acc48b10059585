"""Refresh tokens in, bearer tokens out; every refresh token is good for one exchange, as rotation wants it."""

from typing import Final

from gateway.types import Json

LIFETIME_S: Final = 3600
# A refresh token of this name was taken back by its owner.
REVOKED: Final = "revoked"


class Credentials:
    """The tokens that were handed out. The first refresh token may be any; later ones must be those given in turn."""

    def __init__(self) -> None:
        self._issued: set[str] = set()
        self._spent: set[str] = set()

    def accepts(self, authorization: str) -> bool:
        """Whether a header carries a bearer that was handed out."""
        return authorization.removeprefix("Bearer ") in self._issued

    def exchange(self, grant: str, refresh: str) -> tuple[int, Json]:
        """A status and a body: tokens, or why there are none."""
        if grant != "refresh_token" or not refresh:
            return 400, {"error": {"code": 400, "message": "INVALID_GRANT_TYPE"}}
        if refresh == REVOKED or refresh in self._spent:
            return 400, {"error": {"code": 400, "message": "INVALID_REFRESH_TOKEN"}}
        self._spent.add(refresh)
        count = len(self._spent)
        bearer, following = f"demo-bearer-{count}", f"demo-refresh-{count}"
        self._issued.add(bearer)
        return 200, {
            "access_token": bearer,
            "id_token": bearer,
            "refresh_token": following,
            "expires_in": str(LIFETIME_S),
            "token_type": "Bearer",
            "user_id": "demo",
            "project_id": "demo",
        }
