"""When a source is looked at next: cron of five or six fields (seconds first, contract content 7.7), in a person's time zone."""

from __future__ import annotations

import hashlib
import re
import uuid
import zoneinfo
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from celery.schedules import ParseException, crontab_parser
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from apps.common.errors import InvalidInput

NICKNAMES = {
    "@hourly": "0 0 * * * *",
    "@daily": "0 0 0 * * *",
    "@midnight": "0 0 0 * * *",
    "@weekly": "0 0 0 * * 0",
    "@monthly": "0 0 0 1 * *",
}
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
DAYS = "sun mon tue wed thu fri sat".split()
DAYS_AHEAD = 366 * 5  # the 29th of February comes at least once
JITTER_MAX_S = 120.0


@dataclass(frozen=True, slots=True)
class Cron:
    """Times of a schedule. As cron has it, a day fits by its number or by its weekday where both are limited."""

    second: int
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # 0 is Sunday
    by_day: bool
    by_weekday: bool

    def next_after(self, moment: datetime, zone: str = "") -> datetime | None:
        """The first time after `moment`, in UTC; None when there is none (the 30th of February).

        A time that a change of clocks leaves out comes as much later as the clock jumps; one that comes twice is taken once.
        """
        here = zone_of(zone)
        local = moment.astimezone(here)
        for ahead in range(-1, DAYS_AHEAD):
            day = local.date() + timedelta(days=ahead)
            if not self._fits(day):
                continue
            for hour in self.hours:
                for minute in self.minutes:
                    found = datetime(day.year, day.month, day.day, hour, minute, self.second, tzinfo=here).astimezone(UTC)
                    if found > moment:
                        return found
        return None

    def _fits(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        if self.by_day and self.by_weekday:
            return in_month or in_week
        return in_month and in_week


def zone_of(name: str) -> zoneinfo.ZoneInfo:
    """The time zone of this name; the portal's own for "" and for one this machine does not know (any more)."""
    try:
        return zoneinfo.ZoneInfo(name or settings.TIME_ZONE)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return zoneinfo.ZoneInfo("UTC")


def clean_zone(name: str) -> str:
    """The name of a time zone. Raises: InvalidInput."""
    name = name.strip()
    if name:
        try:
            zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            raise InvalidInput(_("There is no time zone of this name. Write one like Asia/Shanghai."), field="time_zone") from None
    return name


def clean_schedule(text: str) -> str:
    """The schedule with single spaces; "" means by hand only. Raises: InvalidInput that says which part is wrong."""
    text = " ".join(text.split())
    if len(text) > 120:
        raise InvalidInput(_("This schedule is too long."), code="bad_schedule", field="sync_schedule")
    if text and parse(text).next_after(datetime.now(UTC)) is None:
        raise InvalidInput(_("This schedule names a day that never comes."), code="bad_schedule", field="sync_schedule")
    return text


def parse(text: str) -> Cron:
    """Raises: InvalidInput(bad_schedule)."""
    fields = NICKNAMES.get(text.lower(), text).replace("?", "*").split()
    if len(fields) not in (5, 6):
        raise InvalidInput(
            _("A schedule has five fields (minute hour day month weekday), or six with seconds first, such as 0 0 2 * * *."),
            code="bad_schedule",
            field="sync_schedule",
        )
    second, minute, hour, day, month, weekday = fields if len(fields) == 6 else ["0", *fields]
    weekdays = {number % 7 for number in _expand(_named(weekday, DAYS, 0), 8, 0, _("weekday"))}
    return Cron(
        second=min(_expand(second, 60, 0, _("second"))),
        minutes=tuple(sorted(_expand(minute, 60, 0, _("minute")))),
        hours=tuple(sorted(_expand(hour, 24, 0, _("hour")))),
        days=frozenset(_expand(day, 31, 1, _("day"))),
        months=frozenset(_expand(_named(month, MONTHS, 1), 12, 1, _("month"))),
        weekdays=frozenset(weekdays),
        by_day=not day.startswith("*"),
        by_weekday=not weekday.startswith("*"),
    )


def _named(field: str, names: list[str], first: int) -> str:
    return re.sub(r"[a-z]{3,}", lambda found: str(names.index(found[0][:3]) + first) if found[0][:3] in names else found[0], field.lower())


def _expand(field: str, size: int, first: int, name: object) -> set[int]:
    try:
        found: set[int] = crontab_parser(size, first).parse(field)
    except (ParseException, ValueError, ZeroDivisionError, KeyError):
        found = set()
    if not found:
        raise InvalidInput(
            _("“%(field)s” is no %(name)s of a schedule.") % {"field": field[:40], "name": name}, code="bad_schedule", field="sync_schedule"
        )
    return found


def next_run(schedule: str, zone: str, uid: uuid.UUID, after: datetime) -> datetime | None:
    """When a source is due: the next time of its schedule, shifted by a moment of its own so that not all fire at once.

    The shift is always the same for one source: at most two minutes, and a tenth of the time between two runs.
    """
    if not schedule:
        return None
    cron = parse(schedule)
    due = cron.next_after(after, zone)
    if due is None:
        return None
    following = cron.next_after(due, zone)
    room = (following - due).total_seconds() / 10 if following else JITTER_MAX_S
    return due + timedelta(seconds=min(JITTER_MAX_S, room) * share(uid))


def share(uid: uuid.UUID) -> float:
    """A number from 0 to 1 that belongs to this source."""
    return int.from_bytes(hashlib.sha256(uid.bytes).digest()[:4]) / 0xFFFFFFFF
