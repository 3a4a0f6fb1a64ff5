# SPDX-License-Identifier: Apache-2.0
"""Configuration and state files with one thing wrong, and requests that must be refused: made at random, wrong for certain."""
import string

# Key: (least, most) of a number, or the words that are allowed.
GPU_KEYS = {"base_slice_us": (100, 10**6), "max_wait_us": (1000, 10**7), "min_slice_us": (100, 10**6), "max_slice_us": (100, 10**6),
            "averaging_factor": (1, 60), "floor_percent": (1, 25), "idle_grace_us": (0, 10**4), "anticipate_percent": (0, 100),
            "anticipate_us": (10, 10**4), "policy": ("strict", "reserve", "relaxed"), "idle": ("yield", "hold")}
VF_KEYS = {"weight": (1, 10**4), "slice_us": (100, 10**6), "priority": (0, 3), "group": (0, 63), "wake_first": (0, 1)}
DAEMON_KEYS = {"history_interval_ms": (100, 60000), "trace_turns": (1, 1 << 24),
               "placement": ("spread", "pack", "most-free-vram", "numa")}
TENANT_KEYS = {"vfs": (0, 1024), "weight": (0, 10**9), "priority": (0, 3)}
PERIOD_KEYS = {"days": ("daily", "mon-fri", "sat,sun"), "from": ("22:00", "00:00"), "to": ("06:00", "23:59")}
NOT_IN_STATE = ("daemon", "tenant", "user", "calendar")
# A table in each kind of file: its keys.
CONFIG_TABLES = {"daemon": DAEMON_KEYS, "gpu": GPU_KEYS, "gpu.one": GPU_KEYS, "gpu.two": GPU_KEYS, "profile.small": VF_KEYS, "tenant.team": TENANT_KEYS,
                 "user.65534": {"may": ("manage", "look", "nothing")}, "calendar.night": PERIOD_KEYS, "calendar.night.vf.a": VF_KEYS,
                 "calendar.night.gpu.one": GPU_KEYS}
STATE_TABLES = {"gpu.one": GPU_KEYS, "gpu.two": GPU_KEYS, "vf.a": VF_KEYS, "vf.b": VF_KEYS}


def right_value(dice, allowed):
    if isinstance(allowed[0], str):
        return f'"{dice.choice(allowed)}"'
    # Where minimum and maximum of a slice are apart nobody has to compare them.
    return str(dice.randint(allowed[0], allowed[1]))


def wrong_value(dice, allowed):
    """A value of a kind or size that this key never has."""
    wrong = ["true", "[]", "[1, 2]", "{a = 1}", "1979-05-27", "nan", "inf", '""', '"\\u0000"', '"colour"', "1e300", "-1",
             '"' + "x" * dice.randint(1, 3000) + '"', str(2**63 - 1 - dice.randint(0, 9))]
    if not isinstance(allowed[0], str):
        wrong += [str(allowed[1] + 1 + dice.randint(0, 10**dice.randint(1, 12))), "1.5", "-9223372036854775808"]
    if allowed == (0, 1):
        wrong.remove("true")
    return dice.choice(wrong)


def wrong_key(dice, keys):
    key = list(dice.choice(sorted(keys)))
    at = dice.randrange(len(key))
    how = dice.randrange(3)
    if how == 0:
        key[at] = dice.choice(string.ascii_letters + string.digits + "-_")
    elif how == 1:
        key.insert(at, dice.choice(string.ascii_lowercase))
    else:
        del key[at]
    text = "".join(key)
    return wrong_key(dice, keys) if text in keys or text in EVERYWHERE or not text else text


# Keys that some table has and that are not offered above.
EVERYWHERE = {"vram", "host_memory", "profile", "gpu", "paused", "numa_node", "guarantee", "limit", "burst_us", "group_weight", "vfs", "tenant", "may", "vf",
              "from", "to", "days"}


def right_lines(dice, tables):
    """Lines of a file, each (text, table that it is in, key)."""
    lines = []
    for table, keys in tables.items():
        if dice.random() < 0.4:
            continue
        lines.append((f"[{table}]", table, None))
        for key in dice.sample(sorted(keys), dice.randint(0, min(3, len(keys)))):
            # The three of them belong together, and are compared.
            if key not in ("min_slice_us", "max_slice_us", "max_wait_us", "base_slice_us"):
                lines.append((f"{key} = {right_value(dice, keys[key])}", table, key))
    return lines


def _unknown_key(dice, tables):
    table = dice.choice(sorted(tables))
    values = ["1", "true", '""', "[]", "{}", "{weight = 1}"]
    return table, f"{wrong_key(dice, tables[table])} = {dice.choice(values)}"


def _wrong_value(dice, tables):
    table = dice.choice(sorted(tables))
    key = dice.choice(sorted(tables[table]))
    return table, f"{key} = {wrong_value(dice, tables[table][key])}"


def _unknown_table(dice, tables):
    return wrong_key(dice, {table.split(".")[0] for table in tables} | set(NOT_IN_STATE)), "key = 1"


def _wrong_name(dice, tables):
    kind = dice.choice(sorted({table.split(".")[0] for table in tables} - {"daemon"}))
    name = dice.choice(['"a b"', '"../x"', '""', '"\\u00e9"', '"' + "n" * 300 + '"', '"-x"', '"a/b"'])
    return f"{kind}.{name}", "weight = 1" if kind != "gpu" else "base_slice_us = 2000"


def _syntax(dice, tables):
    table = dice.choice(sorted(tables))
    return table, dice.choice(['key = "open', "key = ", "= 1", "key 1", "[[", "[a", "key = 1 1", "key = 0x", 'a."b = 1', "\x01", "\ufffe = 1",
                               "key = [1, 2", "key = {a = 1", "weight = 1__0"])


DEFECTS = (_unknown_key, _wrong_value, _unknown_table, _wrong_name, _syntax)


def wrong_file(dice, tables):
    """(its text, the lines that may be named, what is wrong)."""
    defect = dice.choice(DEFECTS)
    table, line = defect(dice, tables)
    lines = [text for text, of, _ in right_lines(dice, tables) if of != table]
    at = len(lines)
    lines += [f"[{table}]", line]
    # A wrong name is said of the table, or of what is in it.
    places = {_unknown_table: (at + 1,), _wrong_name: (at + 1, at + 2)}.get(defect, (at + 2,))
    return "\n".join(lines) + "\n", places, f"{defect.__name__[1:]}: [{table}] {line[:60]!r}"


def wrong_json_value(dice, allowed):
    wrong = [None, [], {}, [1], {"a": 1}, "", "colour", "1", -1, 1.5, 1e300, 2**63, 2**64, -2**63, "x" * 2000]
    if not isinstance(allowed[0], str):
        wrong += [allowed[1] + 1, allowed[1] + dice.randint(1, 10**9)]
    wrong.remove(None)  # stands for the default
    return dice.choice(wrong)


def wrong_request(dice):
    """(method, path, body as it is sent, what it is)."""
    import json  # pylint: disable=import-outside-toplevel
    keys, path, method = dice.choice([(VF_KEYS, "/v1/vfs/a", "PATCH"), (GPU_KEYS, "/v1/gpus/one", "PATCH"), (GPU_KEYS, "/v1/gpus/two", "PATCH"),
                                      (VF_KEYS, "/v1/vfs", "POST")])
    body = {key: dice.randint(*keys[key]) for key in dice.sample(sorted(VF_KEYS), 2)} if keys is VF_KEYS else {}
    if method == "POST":
        body |= {"name": "new", "vram_bytes": 64 << 20, "gpu": dice.choice(["one", "two"])}
    how = dice.randrange(8)
    key = dice.choice(sorted(keys))
    if how == 0:
        body[wrong_key(dice, keys)] = 1
    elif how == 1:
        body[key] = wrong_json_value(dice, keys[key])
    elif how == 2 and method == "POST":
        if dice.randrange(2):
            body["name"] = dice.choice(["", "a b", "../x", "n" * 300, 7, None, "a", "\u0000", []])
        else:
            body["tenant"] = dice.choice(["", "a b", "nobody", "n" * 300, 7, None, "\u0000", []])
    elif how == 3 and method == "POST":
        body["vram_bytes"] = dice.choice([-1, 1 << 62, 2**64, "1", 1.5, [], 5 << 30])
    elif how == 4:
        text = json.dumps(body | {key: right_json(dice, keys[key])})
        return method, path, dice.choice([text[:dice.randrange(1, len(text))], text + "x", "[" * 5000, text.encode() + b"\xff", "\x00" + text]), "cut or dirty"
    elif how == 5:
        return method, path + dice.choice(["?dry_run=2", "?colour=1", "?dry_run", "?if_unused=yes", "?if_revision=x", "?if_revision=-1", "?if_revision=1&if_revision=1"]), \
            json.dumps(body), "a wrong query"
    elif how == 6:
        path = dice.choice(["/v1/vfs/", "/v1/gpus/three", "/v1/vfs/nobody", "/v2/vfs/a", "/v1/vfs/a/b", "/v1/vfs/%00", "/v1/../v1/gpus/", "/v1/settings/x"])
        return dice.choice(["PATCH", "POST", "DELETE"]), path, json.dumps(body), "a wrong path"
    else:
        parts = {"vfs": {"a": {"weight": dice.randint(1, 10**4)}, "b": {key: wrong_json_value(dice, VF_KEYS[key]) for key in [dice.choice(sorted(VF_KEYS))]}}}
        return "PATCH", "/v1/settings", json.dumps(parts), f"one of two is wrong: {parts['vfs']['b']}"
    return method, path, json.dumps(body), f"{how}: {json.dumps(body)[:120]}"


def right_json(dice, allowed):
    return dice.choice(allowed) if isinstance(allowed[0], str) else dice.randint(*allowed)
