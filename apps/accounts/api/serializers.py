"""Bodies of the sign-in routes (contract platform 1.5)."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class RefreshIn(serializers.Serializer[Any]):
    refreshToken = serializers.CharField(max_length=4096)


class PasswordIn(serializers.Serializer[Any]):
    old_password = serializers.CharField(max_length=256, trim_whitespace=False)
    new_password = serializers.CharField(max_length=256, trim_whitespace=False)


class TokensOut(serializers.Serializer[Any]):
    success = serializers.BooleanField()
    message = serializers.CharField()
    access_token = serializers.CharField()
    refresh_token = serializers.CharField()


class MessageOut(serializers.Serializer[Any]):
    success = serializers.BooleanField()
    message = serializers.CharField()


class ConfigOut(serializers.Serializer[Any]):
    success = serializers.BooleanField()
    registration_mode = serializers.ChoiceField(choices=["self_serve", "invite_only"])


class OidcOut(serializers.Serializer[Any]):
    success = serializers.BooleanField()
    enabled = serializers.BooleanField()
