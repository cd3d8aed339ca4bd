"""Writes the table of permissions into docs/access.md, or with ``--check`` fails if another one is there."""

from collections.abc import Iterator

from generated_section import GeneratedSection

from resolute_serving.auth.policy.permissions import PERMISSIONS, Rule
from resolute_serving.auth.policy.scopes import CLUSTER
from resolute_serving.auth.policy.service_accounts import ACCOUNTS, may_call
from resolute_serving.context import Role

SECTION = GeneratedSection(
    "docs/access.md",
    "<!-- permissions: written by tools/pages/access_table.py -->",
    "<!-- end of permissions -->",
    remedy="make proto",
)


def table() -> str:
    """The table, a part for each gRPC service of the contract."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    service = ""
    for path, rule in PERMISSIONS.items():
        name, method = path.strip("/").split("/")
        if not name.startswith("resolute."):
            continue
        if name != service:
            service = name
            yield f"\n### {name.rsplit('.', 1)[1]}\n"
            roles = " | ".join(role.value for role in Role)
            yield f"| RPC | {roles} | role needed in | SDK in a trial | token of a trial | services |"
            yield "|---|" + ":-:|" * len(Role) + "---|:-:|---|---|"
        yield f"| {method} | {' | '.join(_cells(rule, path))} |"


def _cells(rule: Rule, path: str) -> Iterator[str]:
    for role in Role:
        allowed = rule.public or (rule.user and all(role.includes(need.role) for need in rule.user))
        yield "x" if allowed else ""
    if rule.public:
        yield from ("without a sign-in", "x", "x", "x")
        return
    yield "; ".join(dict.fromkeys(_needs(rule))) or "-"
    yield "x" if _in_scripts(rule) else ""
    yield "" if rule.trial is None else rule.trial.__name__.replace("_", " ")
    yield ", ".join(account for account in ACCOUNTS if may_call(account, path))


def _in_scripts(rule: Rule) -> bool:
    """Whether the SDK in a trial may make the call, for an editor of the experiment's workspace."""
    in_workspace = all(
        (Role.MEMBER if need.scope is CLUSTER else Role.EDITOR).includes(need.role) for need in rule.user
    )
    return bool(rule.user) and not rule.personal and in_workspace


def _needs(rule: Rule) -> Iterator[str]:
    several = len({need.role for need in rule.user}) > 1
    for need in rule.user:
        yield f"{need.role.value} in {need.scope.text}" if several else need.scope.text


def main() -> None:
    """Writes or compares."""
    SECTION.update(table())


if __name__ == "__main__":
    main()
