"""Exchanges refresh tokens for bearer tokens; a refresh token is valid for one exchange (token rotation)."""

from typing import Final

from gateway.core.conversation import Json

LIFETIME_S: Final = 3600
# A refresh token with this value counts as revoked by its owner.
REVOKED: Final = "revoked"


class TokenExchange:
    """The issued tokens. Any first refresh token is accepted; later ones should be those that the exchanges
    returned."""

    def __init__(self) -> None:
        self._issued: set[str] = set()
        self._spent: set[str] = set()

    def accepts(self, authorization: str) -> bool:
        """Returns whether a header carries an issued bearer token."""
        return authorization.removeprefix("Bearer ") in self._issued

    def exchange(self, grant: str, refresh: str) -> tuple[int, Json]:
        """Returns a status and a body: tokens, or the reason of the failure."""
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
