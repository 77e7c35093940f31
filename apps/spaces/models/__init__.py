from apps.spaces.models.api_key import ApiKey
from apps.spaces.models.invitation import Invitation
from apps.spaces.models.space import Membership, Space

__all__ = ["ApiKey", "Invitation", "Membership", "Space"]
