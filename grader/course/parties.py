"""Who hands in together: a party is a student, or a group whose one submission counts for all.

The roster's column ``group`` names the group. Its submission may lie in a folder with the group's
name or with that of any member, or come from Gradescope, which names all members: ``ada+ben``.
Without the column, such a name makes a group of the students it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from grader.course.roster import Person, Roster
from grader.errors import UsageError, one_line
from grader.results.entries import Entry


class Parties:
    """people: the students of the roster. roster: one person for each party, so that boards take a
    group for a student."""

    def __init__(self, people: Roster) -> None:
        members: dict[str, list[Person]] = {}
        for person in people.values():
            members.setdefault(person.group or person.student, []).append(person)
            if person.group in people and people[person.group].group != person.group:
                raise UsageError(
                    f"roster: group {person.group!r} of {person.student!r} is also the name of a "
                    "student who is not in it; rename the group"
                )
        self.people = people
        self._members = members

    @property
    def roster(self) -> Roster:
        return {party: _one(party, people) for party, people in self._members.items()}

    def members(self, party: str) -> Sequence[Person]:
        """Those of the roster for whom its submission counts; () if it knows none."""
        return self._members.get(party, ())

    def merged(self, entries: Iterable[Entry]) -> list[Entry]:
        """Entries with the party in the student's place. Raises UsageError where one student's work
        is in two parties, and nothing says which counts."""
        found = list(entries)
        parties = {name: self._party(name) for name in {e.submission.student for e in found}}
        self._pair_up(parties)
        return [_renamed(entry, parties[entry.submission.student]) for entry in found]

    def _party(self, name: str) -> str:
        if name in self.people:
            return self.people[name].group or name
        named = name.split("+")
        groups = {self.people[each].group for each in named if each in self.people}
        if len(named) > 1 and len(groups) == 1 and all(each in self.people for each in named):
            return groups.pop() or name
        return name

    def _pair_up(self, parties: Mapping[str, str]) -> None:
        """Make groups of those that only a submission's name puts together."""
        used = set(parties.values())
        for party in sorted(used):
            people = [self.people.get(name) for name in party.split("+")]
            if party in self._members or not all(people):
                continue
            together = [person for person in people if person]
            for person in together:
                if person.student in used:
                    raise UsageError(
                        f"{one_line(person.student)} handed in alone and in "
                        f"{one_line(party)}: say which counts with a column 'group' in the roster"
                    )
                if self._members.pop(person.student, None) is None:
                    raise UsageError(
                        f"{one_line(person.student)} is in two groups, one of them "
                        f"{one_line(party)}: say which counts with a column 'group' in the roster"
                    )
            self._members[party] = together


def _one(party: str, people: Sequence[Person]) -> Person:
    """The group as a person. Its times are the latest that any member has: an extension for one
    is one for all."""
    if len(people) == 1 and people[0].student == party:
        return people[0]
    return Person(
        student=party,
        name=", ".join(person.name or person.student for person in people),
        submitted=max((p.submitted for p in people if p.submitted), default=None),
        due=max((p.due for p in people if p.due), default=None),
        canvas={},
        members=tuple(person.student for person in people),
    )


def _renamed(entry: Entry, party: str) -> Entry:
    who = entry.submission
    if who.student == party:
        return entry
    renamed = msgspec.structs.replace(who, student=party)
    return msgspec.structs.replace(entry, submission=renamed)
