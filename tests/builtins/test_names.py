"""The index of names says what the files register."""

import subprocess
import sys

import pytest

from treadle.builtins import names, registry


@pytest.fixture(scope="module", autouse=True)
def everything():
    for name in names.MODULES:
        list(registry.records(name))


def test_the_index_names_every_record_and_its_files():
    found = {}
    for name, records in registry.RECORDS.items():
        found[name] = {r.definition.__module__.removeprefix("treadle.builtins.") for r in records}
    assert found == {name: set(modules) for name, modules in names.MODULES.items()}


def test_aliases_lead_to_records_and_hide_none():
    assert all(target in names.MODULES for target in names.ALIASES.values())
    assert not names.ALIASES.keys() & names.MODULES.keys()
    assert set(names.PUBLIC) >= names.ALIASES.keys() - names.HIDDEN


def test_the_builtins_that_change_a_variable_are_listed():
    changing: dict[str, set] = {}
    for name, records in registry.RECORDS.items():
        for record in records:
            for place, p in enumerate(record.signature.params):
                if p.name in (record.part("updates") or ()):
                    changing.setdefault(name, set()).update((place, p.name))
    changing["address_of"] = {0}  # whoever has the address may write there
    assert changing == {name: set(places) for name, places in names.UPDATING.items()}


def test_a_name_costs_no_import():
    code = (
        "import sys; from treadle.builtins import registry\n"
        "assert registry.exists('quat_slerp') and not registry.exists('nonsense')\n"
        "print([m for m in sys.modules if m.startswith('treadle.builtins.')])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    assert "quaternions" not in out and "elementary" not in out


@pytest.mark.parametrize("name", sorted(names.MODULES))
def test_every_record_has_one_kind_a_signature_and_documentation(name):
    for record in registry.records(name):
        kinds = [part for part in ("lower", "body", "emit", "match") if record.part(part)]
        assert len(kinds) == 1, record
        assert record.doc and record.doc[0].isupper() or record.doc.startswith(("-1", "0 ", "1 ", "``", "e to"))
        assert record.signature.show(name).startswith(f"{name}(")
        assert (record.kind == "primitive") == (record.part("ref") is not None)
    assert name in registry.documentation(name)
