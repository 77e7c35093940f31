"""Forms of data sources. What a kind of source asks for is declared by its connector; here it only becomes fields."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from apps.sources.models import ConflictStrategy, DataSource, DeletionPolicy, SyncMode
from apps.sources.plugins.protocol import ConnectorMeta, Input

#: key -> (label, cron without its time)
EVERY: dict[str, tuple[Any, str]] = {
    "manual": (_("Only by hand"), ""),
    "half": (_("Every 30 minutes"), "0 */30 * * * *"),
    "hourly": (_("Every hour"), "0 0 * * * *"),
    "six": (_("Every 6 hours"), "0 0 */6 * * *"),
    "twelve": (_("Every 12 hours"), "0 0 */12 * * *"),
    "daily": (_("Every day at"), ""),
    "weekly": (_("Every week on"), ""),
    "cron": (_("By a cron expression"), ""),
}
DAYS = (
    (1, _("Monday")), (2, _("Tuesday")), (3, _("Wednesday")), (4, _("Thursday")), (5, _("Friday")), (6, _("Saturday")), (0, _("Sunday")),
)  # fmt: skip


def _field(each: Input, *, stored: bool) -> forms.Field:
    hint = each.hint
    if each.where == "credentials" and stored:
        hint = _("Stored and never shown. Leave all credentials empty to keep them; to change them, enter all of them.")
    common: dict[str, Any] = {"label": each.label, "required": False, "help_text": hint}
    if each.kind == "secret":
        return forms.CharField(widget=forms.PasswordInput, strip=False, **common)
    if each.kind == "lines":
        return forms.CharField(widget=forms.Textarea(attrs={"rows": 3}), strip=False, **common)
    if each.kind == "number":
        return forms.CharField(widget=forms.NumberInput, **common)
    if each.kind == "choice":
        return forms.ChoiceField(choices=each.choices, **common)
    if each.kind == "boolean":
        return forms.BooleanField(**common)
    return forms.CharField(widget=forms.URLInput if each.kind == "url" else forms.TextInput, **common)


class ConnectionForm(forms.Form):
    """Name, credentials and settings of one kind of source. Required fields and limits are checked by the services.

    `in_names` are the fields in the order of the connector; a field is called as its input, so that errors find their way.
    """

    name = forms.CharField(label=_("Name"), required=False, help_text=_("Documents get a tag of this name."))

    def __init__(self, *args: Any, meta: ConnectorMeta, source: DataSource | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.meta, self.source = meta, source
        for each in meta.inputs:
            self.fields[each.name] = _field(each, stored=bool(source and source.sealed))
            self.fields[each.name].initial = each.default
        if source is not None:
            self.initial = {**source.settings, **self.initial, "name": source.name}

    def values_in(self, where: str) -> dict[str, Any]:
        """What was typed, of the credentials or of the settings."""
        return {each.name: self.cleaned_data.get(each.name) for each in self.meta.inputs if each.where == where}

    def credentials(self) -> dict[str, str]:
        return {name: str(value) for name, value in self.values_in("credentials").items() if value not in ("", None, False)}

    def asks_for_others(self) -> bool:
        """Whether credentials were typed over stored ones, which are never shown."""
        return bool(self.credentials())


class ScheduleForm(forms.Form):
    """When it is looked at, and what protects what is here."""

    every = forms.ChoiceField(label=_("How often"), choices=[(key, label) for key, (label, _cron) in EVERY.items()])
    at = forms.CharField(label=_("Time"), required=False, widget=forms.TextInput(attrs={"type": "time"}))
    day = forms.TypedChoiceField(label=_("Day"), choices=DAYS, coerce=int, required=False)
    cron = forms.CharField(
        label=_("Cron expression"),
        required=False,
        help_text=_("Minute hour day month weekday, such as 30 7 * * mon-fri; seconds may stand before."),
    )
    time_zone = forms.CharField(label=_("Time zone"), required=False, help_text=_("In which these times are meant."))
    sync_mode = forms.ChoiceField(label=_("What is fetched"), choices=SyncMode.choices)
    conflict_strategy = forms.ChoiceField(
        label=_("When a document was changed here as well"), choices=ConflictStrategy.choices, widget=forms.RadioSelect
    )
    deletion_policy = forms.ChoiceField(
        label=_("When something is gone at the source"), choices=DeletionPolicy.choices, widget=forms.RadioSelect
    )
    log_retention_days = forms.IntegerField(label=_("Days the history is kept"), required=False)

    def clean_at(self) -> str:
        raw = self.cleaned_data["at"].strip()
        hour, _colon, minute = raw.partition(":")
        if raw and not (hour.isdigit() and minute[:2].isdigit() and int(hour) < 24 and int(minute[:2]) < 60):
            raise forms.ValidationError(_("Write a time like 02:30."))
        return raw

    def values(self) -> dict[str, Any]:
        """What the services take."""
        data = dict(self.cleaned_data)
        every, at, day, cron = (data.pop(name) for name in ("every", "at", "day", "cron"))
        hour, _colon, minute = (at or "02:00").partition(":")
        timed = f"0 {int(minute[:2] or 0)} {int(hour)} * *"
        times = {"daily": f"{timed} *", "weekly": f"{timed} {day if day != '' else 1}", "cron": cron or ""}
        return {**data, "schedule": times.get(every, EVERY[every][1]), "log_retention_days": data["log_retention_days"] or 30}


def schedule_initial(source: DataSource) -> dict[str, Any]:
    """What the form shows of a source's schedule: a preset where it is one."""
    shown: dict[str, Any] = {name: getattr(source, name) for name in ("time_zone", "sync_mode", "conflict_strategy", "log_retention_days")}
    shown |= {"at": "02:00", "day": 1, "cron": "", "every": "manual"}
    shown["deletion_policy"] = DeletionPolicy.HOLD if source.is_draft else source.deletion_policy
    if source.is_draft:
        shown["every"] = "six"
    elif source.schedule:
        shown |= preset_of(source.schedule)
    return shown


def preset_of(schedule: str) -> dict[str, Any]:
    """`every` and what belongs to it: the preset a schedule is, else the cron expression itself."""
    for key, (_label, cron) in EVERY.items():
        if cron and cron == schedule:
            return {"every": key}
    parts = schedule.split()
    if len(parts) == 5:
        parts = ["0", *parts]
    if len(parts) == 6 and parts[0] == "0" and parts[1].isdigit() and parts[2].isdigit() and parts[3:5] == ["*", "*"]:
        at = f"{int(parts[2]):02d}:{int(parts[1]):02d}"
        if parts[5] == "*":
            return {"every": "daily", "at": at}
        if parts[5].isdigit():
            return {"every": "weekly", "at": at, "day": int(parts[5]) % 7}
    return {"every": "cron", "cron": schedule}
