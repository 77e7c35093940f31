"""smoke"""
import pytest
from django.urls import reverse

def test_pages(world):
    c = world.client("admin", by="session")
    sid = world.home.pk
    for name, args in [("home",[sid]),("space-settings",[sid]),("members-page",[sid]),("invitations-page",[sid]),("keys-page",[sid]),("profile",[]),("space-new",[]),("my-invitations-page",[]),("invitation-landing",[world.ids["home"]["token"]])]:
        r = c.get(reverse(name,args=args))
        assert r.status_code==200, (name, r.status_code, r.content[:500])
    a = world.client("anonymous", by="session")
    for n in ["account_login","account_signup","account_reset_password","account_reset_password_done"]:
        assert a.get(reverse(n)).status_code==200
    assert a.get("/").status_code==302
    for n in ["account_email","account_change_password","account_logout","account_reauthenticate"]:
        assert c.get(reverse(n)).status_code==200, n
