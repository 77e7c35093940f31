from apps.accounts.models.founder import Founder
from apps.accounts.models.token import AccessToken
from apps.accounts.models.user import User

__all__ = ["AccessToken", "Founder", "User"]
